#!/bin/sh
# Makes resume.svg and approval.svg of this folder: real sessions of the program on a pseudo-terminal, with a model that
# plays a script. Run it in the repository's root after what these screens show has changed, and look at the pictures.
# picker.svg comes from the test of the picker:
#
#   ROOST_PICTURES=/tmp/pictures go test -run TestScreensOfThePicker ./cli
set -eu
work=/tmp/ana # it is in the pictures
rm -rf "$work"
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/bin" "$work/site"
CGO_ENABLED=0 go build -trimpath -o "$work/bin/roost" ./cmd/roost
CGO_ENABLED=0 go build -trimpath -o "$work/record" ./internal/testing/screen/record
here=$PWD/docs/img

cat > "$work/model.yaml" <<'END'
- text: "I will look at the site, and then publish it."
  delay: 30ms
  tools: [{name: list_files, input: {path: .}}]
- text: "There are **two pages**. Publishing takes some seconds."
  delay: 30ms
  tools: [{name: execute_command, input: {command: "sleep 60 && echo published >> log"}}]
- text: "I do not know whether the site was published, so I look at the log first."
  delay: 30ms
  tools: [{name: read_file, input: {path: log}}]
- text: "It was not. I publish it now."
  delay: 30ms
  tools: [{name: execute_command, input: {command: "echo published >> log"}}]
- tools: [{name: attempt_completion, input: {result: "The site is **published**, once."}}]
END
cat > "$work/edit.yaml" <<'END'
- text: "The greeting is on the first page. I will change it."
  tools: [{name: apply_diff, input: {path: index.html, diff: "<<<<<<< SEARCH\n<h1>Hello</h1>\n=======\n<h1>Good morning</h1>\n>>>>>>> REPLACE"}}]
- tools: [{name: attempt_completion, input: {result: "The greeting is changed."}}]
END
printf '<html>\n<h1>Hello</h1>\n</html>\n' > "$work/site/index.html"
printf '<html>\n<p>About us</p>\n</html>\n' > "$work/site/about.html"
printf 'built\n' > "$work/site/log"

cat > "$work/resume.rec" <<'END'
wait $
type "roost run --yes 'publish the site' & sleep 6; kill -9 $!; echo; echo killed: $?"
press enter
watch "sleep 60"
watch "killed: 0"
hold 3s
type "clear; roost continue --yes"
press enter
watch "published, once"
wait $
hold 4s
END
cat > "$work/approval.rec" <<'END'
wait $
type "roost run --model ../edit.yaml 'greet with good morning'"
press enter
wait "Good morning"
wait "stop >"
shot approval
press y
wait "is changed"
END

play() {
	(cd "$work/site" && env -i PATH="$work/bin:$PATH" HOME="$work" TMPDIR="$work" TERM=xterm-256color LANG=C.UTF-8 PS1='$ ' \
		ROOST_SOURCES=none ROOST_THEME=dark ROOST_PROVIDER=script ROOST_MODEL=../model.yaml "$work/record" "$@" -- /bin/sh)
}
play -theme dark -script "$work/resume.rec" -size 90x26 -o "$here/resume.svg"
play -theme dark -script "$work/approval.rec" -size 90x24 -shots "$here"
ls -l "$here"
