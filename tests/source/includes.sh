#!/bin/sh
# includes.sh ROOT - checks which folder includes which.
#
# Reads the #include lines of every file of lib, models and apps, and fails, naming file and line, if one reaches into a
# folder that is not in its row below. The public headers are below everything; a folder always sees itself.
set -eu
cd "${1:-$(dirname "$0")/../..}"

find lib models apps -name '*.[chS]' | sort | xargs awk '
BEGIN {
    # The library, from the ground up: a folder sees only folders above its row. It knows no model and no app.
    may["lib/base"]      = ""
    may["lib/comm"]      = "base"
    may["lib/tensor"]    = "base"
    may["lib/engine"]    = "base tensor"
    may["lib/dist"]      = "base tensor engine"
    may["lib/nn"]        = "base tensor engine dist"
    may["lib/guide"]     = "base tensor engine dist nn"
    may["lib/estimator"] = "base tensor engine dist"
    may["lib/optim"]     = "base tensor engine"
    may["lib/data"]      = "base"
    may["lib/program"]   = "base tensor engine dist nn guide estimator optim data"
    may["lib/check"]     = "base tensor engine estimator program"
    may["lib/store"]     = "base tensor engine estimator optim data program"
    may["lib/ask"]       = "base tensor engine estimator optim program store"
    may["lib/train"]     = "base comm tensor engine dist guide estimator optim data program check store ask"
    may["lib/results"]   = "base data program store"

    # A built-in model is written as the model of a user is: it sees the public headers and its own folder. What reads its
    # files needs files, texts and memory.
    may["models"]         = "models"
    may["models/corpora"] = "models base"

    # Apps are users of the library. Beyond the public headers they see
    #     base            errors, files, texts, clocks
    #     store           serve, sweep, rws: locks, checksums and folders of runs, which are not public
    #     results         serve: the reader of a store that is being written; sweep: a folder that may have no runs yet; rws: keys
    #     ask             serve, rws: marginals and answers
    #     data            serve: JSON within limits; rws: tables of data to ask about
    #     program         serve, rws: whether a shared object may be loaded; the settings of a model; rws, sweep: the members of
    #                     a configuration
    #     optim           sweep: checks a schedule before runs start
    #     comm, train     rws: ranks of a job; what bench and eval look into
    #     tensor dist nn  rws: the products that bench counts; the tables that list shows
    #     models          rws: the corpora of `rws data`, and their cache
    may["apps/figure"] = "base"
    may["apps/paper"]  = "base figure"
    may["apps/serve"]  = "base data program store results ask figure"
    may["apps/sweep"]  = "base program optim store results rws"
    may["apps/rws"]    = "base data comm tensor dist nn program store train ask results models figure paper serve sweep"

    # Single files that see more, each for a reason.
    also["models/picture.c"] = also["models/picture.h"] = "base tensor engine nn" # ops of its own, which have no public header
    for (folder in may) {
        own = folder
        sub(/^(lib|apps)\//, "", own)
        allowed[folder, own] = 1
        n = split(may[folder], other, " ")
        for (i = 1; i <= n; i++) allowed[folder, other[i]] = 1
    }
    for (file in also) {
        n = split(also[file], other, " ")
        for (i = 1; i <= n; i++) allowed_file[file, other[i]] = 1
    }
}

function complain(what) {
    printf "%s:%d: %s\n", FILENAME, FNR, what
    n_wrong++
}

FNR == 1 {
    n_files++
    folder = FILENAME
    sub(/\/[^\/]*$/, "", folder)
    if (!(folder in may)) complain("the folder " folder " is not in the table of tests/source/includes.sh")
}

/^[ \t]*#[ \t]*include[ \t]*["<]/ {
    quoted = $0 ~ /include[ \t]*"/
    header = $0
    sub(/^[^"<]*["<]/, "", header)
    sub(/[">].*/, "", header)
    if (header ~ /^rws(_train|_results)?\.h$/) next
    from = header
    sub(/\/[^\/]*$/, "", from)
    if (from == "models/corpora") from = "models"
    known = ("lib/" from) in may || ("apps/" from) in may || from in may
    if (known) {
        if (!((folder, from) in allowed) && !((FILENAME, from) in allowed_file))
            complain(folder " includes " header ", but may include only: the public headers, " folder " " may[folder])
    } else if (quoted) {
        complain("\"" header "\" does not name its folder; write \"folder/header.h\"")
    }
}

END {
    if (n_files == 0) { print "no files found"; exit 1 }
    printf "%d files read, %d lines out of their folder\n", n_files, n_wrong
    exit n_wrong > 0
}'
