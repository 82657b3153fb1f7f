#!/bin/sh
# rooms.sh SRC - checks which room includes which.
#
# Reads the #include lines of every file in SRC/<room>/ and fails, naming file and line, when one reaches into a room
# that is not in its row below. rws.h is public and below everything; a room always sees itself.
set -eu
cd "${1:-$(dirname "$0")/../src}"

find . -name '*.[chS]' | sort | xargs awk '
BEGIN {
    # From the ground up. The order alone does not decide: model sees only what a user of rws.h sees, data, and the
    # likelihood of pictures in vision; figure, paper and serve show what run stored and know nothing of how it came
    # about.
    may["base"]      = ""
    may["comm"]      = "base"
    may["tensor"]    = "base"
    may["engine"]    = "base tensor"
    may["dist"]      = "base tensor engine"
    may["nn"]        = "base tensor engine dist"
    may["vision"]    = "base tensor engine"
    may["estimator"] = "base tensor engine dist"
    may["optim"]     = "base tensor engine"
    may["data"]      = "base"
    may["model"]     = "base data vision"
    may["run"]       = "base comm tensor engine dist nn vision estimator optim model data"
    may["figure"]    = "base run"
    may["paper"]     = "base run figure"
    may["serve"]     = "base run figure"
    may["cli"]       = "base comm tensor engine dist nn vision estimator optim model data run figure paper serve"
    for (room in may) {
        allowed[room, room] = 1
        n = split(may[room], other, " ")
        for (i = 1; i <= n; i++) allowed[room, other[i]] = 1
    }
}

function complain(what) {
    printf "src/%s:%d: %s\n", substr(FILENAME, 3), FNR, what
    n_wrong++
}

FNR == 1 {
    n_files++
    split(FILENAME, part, "/")
    room = part[2]
    if (!(room in may)) complain("the room " room " is not in the table of tests/rooms.sh")
}

/^[ \t]*#[ \t]*include[ \t]*["<]/ {
    quoted = $0 ~ /include[ \t]*"/
    header = $0
    sub(/^[^"<]*["<]/, "", header)
    sub(/[">].*/, "", header)
    split(header, part, "/")
    if (header == "rws.h" || header == "rws_train.h") next
    if (part[1] in may) {
        if (!((room, part[1]) in allowed))
            complain(room " includes " header ", but may include only: rws.h " room " " may[room])
    } else if (quoted) {
        complain("\"" header "\" does not name its room; write \"room/header.h\"")
    }
}

END {
    if (n_files == 0) { print "no files found"; exit 1 }
    printf "%d files read, %d lines out of their room\n", n_files, n_wrong
    exit n_wrong > 0
}'
