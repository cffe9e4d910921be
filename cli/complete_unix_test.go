//go:build unix

package cli

import (
	"bytes"
	"context"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/roost-dev/roost/config"
	"github.com/roost-dev/roost/internal/testing/clitest"
)

// complete asks roost as the shells' scripts do: the last word is begun. It gives
// the words, and the directive.
func (s *sandbox) complete(words ...string) (got []string, directive string) {
	s.t.Helper()
	env := append([]string{"HOME=" + filepath.Join(s.dir, "home"), "ROOST_ROOT=" + s.root, "ROOST_SOURCES=" + s.store}, s.extra...)
	a, out, errs := clitest.New(s.t, env...)
	if code := Run(context.Background(), a, append([]string{"__complete"}, words...)); code != 0 {
		s.t.Fatalf("complete %q: exit %d\n%s%s", words, code, out, errs)
	}
	lines := strings.Split(strings.TrimRight(out.String(), "\n"), "\n")
	got = []string{}
	for _, line := range lines[:len(lines)-1] {
		if strings.HasPrefix(line, words[len(words)-1]) { // as every shell does
			got = append(got, line)
		}
	}
	return got, lines[len(lines)-1]
}

// Directives of cobra, as numbers that add up.
const (
	noFiles     = ":4"
	byExtension = ":8"
	onlyFolders = ":16"
	inOrder     = ":36" // and no files
)

func TestCompletions(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	s.foreign("alpha-1", "paint \x1b[2Jthe\tfence\nnow", 1776200000000)
	s.foreign("alpha-2", strings.Repeat("a very long title ", 20), 1776300000000)
	s.foreign("beta", "mow", 1776100000000)
	s.foreign("a b", "its name is no id", 1776100000000)
	long := "alpha-2\t" + strings.Repeat("a very long title ", 20)[:49] + "…"
	tests := []struct {
		name      string
		words     []string
		want      []string
		directive string
	}{
		{"ids, newest first, with their titles", []string{"show", ""}, []string{long, "alpha-1\tpaint the fence now", "beta\tmow"}, inOrder},
		{"ids that begin so", []string{"resume", "b"}, []string{"beta\tmow"}, inOrder},
		{"only one id", []string{"show", "beta", ""}, []string{}, noFiles},
		{"several ids", []string{"doctor", "beta", "alpha-1"}, []string{"alpha-1\tpaint the fence now"}, inOrder},
		{"words after an id are the person's", []string{"resume", "beta", ""}, []string{}, noFiles},
		{"ids of a flag", []string{"run", "--task", "be"}, []string{"beta\tmow"}, inOrder},
		{"values of a flag", []string{"list", "--status", "c"}, []string{"completed", "cancelled"}, noFiles},
		{"orders", []string{"list", "--sort", ""}, []string{"newest", "oldest", "cost", "tokens"}, noFiles},
		{"policies", []string{"run", "--approve", ""}, []string{"ask", "read", "edits", "all"}, noFiles},
		{"providers", []string{"run", "--provider", "op"}, []string{"openai", "openai-compatible"}, noFiles},
		{"a script is a file", []string{"run", "--provider", "script", "--model", ""}, []string{"yaml", "yml"}, byExtension},
		{"a workspace is a folder", []string{"run", "-C", ""}, []string{}, onlyFolders},
		{"so is a root", []string{"--root", ""}, []string{}, onlyFolders},
		{"an image is one", []string{"run", "--image", ""}, []string{"png", "jpg", "jpeg", "gif", "webp"}, byExtension},
		{"nothing for a number", []string{"show", "--tail", ""}, []string{}, noFiles},
		{"a prompt is nobody's business", []string{"run", ""}, []string{}, noFiles},
		{"names of settings", []string{"config", "get", "max_t"}, []string{"max_turns\trequests to the model in one run", "max_tokens\ttokens of one reply"}, noFiles},
		{"values of a setting", []string{"config", "set", "approve", "r"}, []string{"read"}, noFiles},
		{"topics", []string{"help", "exi"}, []string{"exit-codes\tThe exit codes and their meanings."}, noFiles},
		{"shells", []string{"completion", "z"}, []string{"zsh"}, noFiles},
		{"list takes no words", []string{"list", ""}, []string{}, noFiles},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, directive := s.complete(tt.words...)
			if diff := cmp.Diff(tt.want, got); diff != "" || directive != tt.directive {
				t.Errorf("directive %s, want %s; %s", directive, tt.directive, diff)
			}
		})
	}
	sources, _ := s.complete("list", "--source", "")
	if len(sources) != 2 || !strings.HasPrefix(sources[0], "roost\t") || !strings.HasPrefix(sources[1], "store-") {
		t.Errorf("sources: %q", sources)
	}
	name, _, _ := strings.Cut(sources[1], "\t")
	if got, _ := s.complete("show", name+":be"); !slices.Equal(got, []string{name + ":beta\tmow"}) {
		t.Errorf("an id with its source: %q", got)
	}
	models, _ := s.complete("run", "--provider", "anthropic", "--model", "claude-")
	if len(models) == 0 {
		t.Error("no models of anthropic")
	}
}

// What is wrong with a user's settings is no business of a completion.
func TestCompletionsAreSilent(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	s.foreign("alpha-1", "paint the fence", 1776200000000)
	file := filepath.Join(s.dir, "home", ".config", "roost", "config.toml")
	if r := s.roost("config", "set", "mode", "ask"); r.code != 0 {
		t.Fatal(r.err)
	}
	must(t, config.Replace(file, []byte("mdel = 1\n")))
	cmd := s.command("__complete", "show", "")
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil || !strings.HasPrefix(out.String(), "alpha-1\t") || strings.Contains(errs.String(), "mdel") {
		t.Errorf("got %v\n%s%s, want no error and strings.HasPrefix(out.String(), \"alpha-1\\t\") and not strings.Contains(errs.String(), \"mdel\")",
			err, &out, &errs)
	}
	must(t, config.Replace(file, []byte("mdel = \n")))
	if got, _ := s.complete("show", ""); len(got) > 0 {
		t.Errorf("with settings that cannot be read: %q", got)
	}
	s.env("ROOST_ROOT=not/absolute")
	if got, _ := s.complete("list", "--source", ""); len(got) > 0 {
		t.Errorf("with a root that cannot be used: %q", got)
	}
}

// The generated script does it in a real shell.
func TestBashCompletes(t *testing.T) {
	t.Parallel()
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip(err)
	}
	s := newSandbox(t)
	s.foreign("alpha-1", "paint the fence", 1776200000000)
	s.foreign("beta-22", "mow", 1776100000000)
	// bash-completion's helper and compopt, as far as the script needs them: the
	// first may not be installed, the second works only while a person completes.
	const script = `
_get_comp_words_by_ref() {
	while [[ $1 == -* ]]; do [[ $1 == -n ]] && shift; shift; done
	cur=${COMP_WORDS[COMP_CWORD]}; prev=${COMP_WORDS[COMP_CWORD-1]}
	words=("${COMP_WORDS[@]}"); cword=$COMP_CWORD
}
compopt() { :; }
source <(roost completion bash)
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMP_LINE="$*"; COMP_POINT=${#COMP_LINE}; COMP_TYPE=9
__start_roost
printf '%s\n' "${COMPREPLY[@]}"
`
	for _, tt := range []struct{ line, want string }{
		{"roost sho", "show"},
		{"roost show b", "beta-22"},
		{"roost resume a", "alpha-1"},
		{"roost list --sta", "--status"},
		{"roost list --status w", "waiting"},
		{"roost run --approve e", "edits"},
		{"roost run --approve=e", "edits"},
		{"roost config set app", "approve"},
		{"roost --root /x list --sort c", "cost"},
	} {
		cmd := s.command()
		cmd.Path, cmd.Args = bash, append([]string{bash, "-c", script, "bash"}, strings.Fields(tt.line)...)
		out, err := cmd.CombinedOutput()
		got := strings.Fields(string(out))
		if err != nil || len(got) == 0 || strings.TrimPrefix(got[0], "--approve=") != tt.want {
			t.Errorf("%s<TAB>: %q, %v; want %s", tt.line, out, err, tt.want)
		}
	}
}

func TestEveryFlagSaysHowItIsCompleted(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	for _, command := range []string{"run", "resume", "continue", "list", "show"} {
		flags, _ := s.complete(command, "--")
		for _, line := range flags {
			flag, _, _ := strings.Cut(line, "\t")
			if !strings.HasPrefix(flag, "--") || slices.Contains(booleans, flag) {
				continue
			}
			if _, directive := s.complete(command, flag, ""); directive == ":0" {
				t.Errorf("%s %s offers the files of the folder", command, flag)
			}
		}
	}
}

var booleans = []string{
	"--yes", "--detach", "--stream", "--json", "--quiet", "--verbose", "--no-color", "--no-input", "--help", "--ui", "--api",
	"--effective", "--journal", "--usage", "--tree", "--damaged", "--empty",
}
