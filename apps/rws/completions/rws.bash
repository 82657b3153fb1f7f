# Completion of rws for bash: the program itself says which words may follow.
_rws() {
    local line=${COMP_LINE:0:COMP_POINT} words
    read -ra words <<<"$line"
    [[ $line == *[[:space:]] ]] && words+=('')
    mapfile -t COMPREPLY < <("${COMP_WORDS[0]}" help --complete -- "${words[@]:1}" 2>/dev/null | cut -f 1)
    # bash takes "--method=" for words of their own, and replaces only what is behind it.
    local last=${words[-1]}
    [[ $last == *=* ]] && COMPREPLY=("${COMPREPLY[@]#"${last%%=*}="}")
}
complete -o default -F _rws rws
