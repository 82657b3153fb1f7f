#!/bin/sh
# test_pictures.sh PROGRAM - models of images: inference from PNG files, drawings of samples, pictures during training.
set -u
rws=$(realpath "${1:?usage: test_pictures.sh PROGRAM}")
. "$(dirname "$0")/../../tap.sh"

# A block of 4 x 5 points on a canvas of 12 x 12: grey, and yellow on a dark blue; and a picture of 9 x 7.
base64 -d >grey.png <<'P'
iVBORw0KGgoAAAANSUhEUgAAAAwAAAAMCAAAAABzHgM7AAAAEklEQVR42mNgIA/8BwKKOEQAAKU9E+35iG7BAAAAAElFTkSuQmCC
P
base64 -d >Colour.PNG <<'P'
iVBORw0KGgoAAAANSUhEUgAAAAwAAAAMCAIAAADZF8uwAAAAG0lEQVR42mNgYHAgAg2Qov//GeBoSCmiSzgBAE1ZRtn2yzPaAAAAAElFTkSuQmCC
P
base64 -d >small.png <<'P'
iVBORw0KGgoAAAANSUhEUgAAAAkAAAAHCAAAAAD/8Di8AAAADElEQVR42mNgoAYAAABGAAEpNIy/AAAAAElFTkSuQmCC
P

is_png() { # file least-side: a PNG whose width has so many points
    [ "$(head -c 4 "$1" | tail -c 3)" = PNG ] && [ "$(od -An -tu1 -j18 -N2 "$1" | awk '{ print 256 * $1 + $2 }')" -ge "$2" ]
}

tiny='--set images=blocks --set canvas=12 --set glimpse=6 --set what=4 --set hidden=16'

# ---- pictures of a training
gives 0 "training a model of images" train air $tiny -n 20 --eval-every 10 --eval-data 20 --out run
[ "$(ls run/pictures | tr '\n' ' ')" = '00000001.png 00000010.png 00000020.png ' ]
report $? "every evaluation leaves a picture, and nothing else"
is_png run/pictures/00000020.png 500
report $? "which is a PNG"
gives 0 "without pictures" train air $tiny -n 20 --eval-every 10 --eval-data 20 --out plain --pictures 0
[ ! -e plain/pictures ]
report $? "there are none"
same_checkpoint "and the run is the same" run plain
gives 0 "more images than test data" train air $tiny -n 1 --eval-data 3 --pictures 50 --out few
is_png few/pictures/00000001.png 300
report $? "shows those there are"
gives 0 "a model without images" train gmm -n 10 --out gmm --pictures 5
[ ! -e gmm/pictures ]
report $? "leaves none"
gives 0 "without --out" train air $tiny -n 1 --eval-data 3
refuses '--pictures' train air $tiny --pictures many
cp -r run again && rm -r again/pictures && : >again/pictures
gives 0 "training continues where pictures cannot be written" train air --out again --resume -n 30
grep -q 'no more pictures: .*again/pictures' err
report $? "and says so"

# ---- asking
gives 0 "a PNG" infer run grey.png -k 50 --json
grep -q '"asked": *"grey.png"' out && grep -q '"seen"' out
report $? "is looked at"
! grep -q '"exact' out
report $? "an exact posterior that the model cannot compute is left out"
sed 's/.*"seen": *\(\[[^]]*\]\).*/\1/' out >grey
gives 0 "one with colours" infer run Colour.PNG -k 50 --json
sed 's/.*"seen": *\(\[[^]]*\]\).*/\1/' out | cmp -s - grey
report $? "looks the same to a model of black and white"
gives 0 "test images" infer run --test 0-2 -k 20 --json
[ "$(grep -c '"seen":\[\([01],\)*[01]\]' out)" = 3 ]
report $? "with the pixels that eval sees"
gives 0 "a belief network has no text to read" train sbn --set data=noise --set pixels=9 --set layers=3 -n 1 --eval-data 5 --out nine
gives 0 "but takes numbers" infer nine '1 0 0 1 1 0 0 1 1' -k 20 --json
gives 0 "and test data" infer nine --test 0 -k 20 --json
refuses 'small.png" is 9 x 7 pixels, and the run was trained on 12 x 12; scale it' infer run small.png
refuses 'none.png' infer run none.png
head -c 60 grey.png >cut.png
refuses 'damaged or cut short' infer run cut.png
echo 'not what its name says it is' >text.png
refuses 'not a PNG' infer run text.png
gives 0 "drawn, with test images beside" infer run grey.png 0 1 2 3 4 5 6 7 8 9 -k 20 --out seen.png
is_png seen.png 500
report $? "as a picture"

# ---- sampling
gives 0 "samples of a model of images" sample run --count 13 --out drawn.png
is_png drawn.png 500 && grep -q '^n [0-3]$' out
report $? "are drawn"
gives 0 "as anything that can be drawn" sample run --count 3 --out drawn.svg
refuses '.gif' sample run --out drawn.gif
refuses 'neither' sample gmm --out drawn.png
gives 0 "choices as bars" infer gmm 42 --out bars.svg
[ -s bars.svg ]
report $? "in a file"
gives 0 "a belief network" train sbn --set data=noise --set pixels=49 --set layers=5 -n 1 --eval-data 5 --out sbn
is_png sbn/pictures/00000001.png 300 && run sample sbn --count 2 --out drawn.pdf && [ ! -s out ]
report $? "has pictures, and nothing to say of them"
gives 0 "one whose data are no squares" train sbn --set data=noise --set pixels=48 --set layers=5 -n 1 --eval-data 5 --out odd
[ ! -e odd/pictures ]
report $? "has not"
gives 0 "samples of trees" train pcfg -n 1 --set rules=grammar --out pcfg
gives 0 "are drawn too" sample pcfg --count 2 --out trees.svg --only sentence

finish
