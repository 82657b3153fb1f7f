#!/bin/sh
# embed.sh FILE... - writes, as assembler, a table of the files and their bytes (page.h) to stdout.
set -eu
echo '/* made by embed.sh */'
echo '        .section .rodata'
i=0
for file; do
    echo "/* $(cksum <"$file") */" # Meson compiles the output again only if it differs
    echo "file_$i: .incbin \"$file\""
    echo "end_$i: .byte 0"
    echo "name_$i: .asciz \"$(basename "$file")\""
    case $file in
    *.html) type='text/html; charset=utf-8' ;;
    *.js) type='text/javascript; charset=utf-8' ;;
    *.css) type='text/css; charset=utf-8' ;;
    *.svg) type='image/svg+xml' ;;
    *) echo "embed.sh: no content type for $file" >&2; exit 1 ;;
    esac
    echo "type_$i: .asciz \"$type\""
    i=$((i + 1))
done
echo '        .section .data.rel.ro, "aw"'
echo '        .balign 8'
echo '        .global rws_page_files'
echo '        .hidden rws_page_files'
echo 'rws_page_files:'
n=$i
i=0
while [ $i -lt $n ]; do
    echo "        .quad name_$i, type_$i, file_$i, end_$i"
    i=$((i + 1))
done
echo '        .quad 0, 0, 0, 0'
echo '        .section .note.GNU-stack, "", %progbits'
