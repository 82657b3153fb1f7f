# Completion of rws for fish: the program itself says which words may follow.
function __rws_complete
    set -l words (commandline -opc)
    $words[1] help --complete -- $words[2..-1] (commandline -ct) 2>/dev/null
end
complete -c rws -n 'test (count (commandline -opc)) -eq 1' -f
complete -c rws -a '(__rws_complete)'
