package cli

import (
	"os/exec"
	"strings"
	"testing"
	"time"
)

const twoQuestions = `
- tools: [{name: ask_followup_question, input: {question: "the first?", follow_up: [{text: left, mode: null}, {text: right, mode: null}]}}]
- tools: [{name: ask_followup_question, input: {question: "the second?", follow_up: [{text: up, mode: null}]}}]
- tools: [{name: attempt_completion, input: {result: "all answered"}}]
`

// A question that somebody else answers goes from the terminal that runs the task, and
// what was typed for it is no part of the next answer.
func TestAnAnswerFromElsewhereTakesTheQuestionOffTheTerminal(t *testing.T) {
	t.Parallel()
	s := newSandbox(t).reachable()
	x := s.onTerminal("run", "--provider", "script", "--model", s.script(twoQuestions), "-C", s.ws, "--yes", "ask me")
	x.expect("the first?")
	x.expect("your own words")
	id := s.list()[0].ID
	x.press("righ")
	if r := s.roost("send", id, "left"); r.code != 0 {
		t.Errorf("send: exit %d\n%s", r.code, r.err)
	}
	x.expect("answered by")
	x.expect("elsewhere")
	x.expect("the second?")
	x.expect("your own words")
	time.Sleep(1200 * time.Millisecond) // what is typed at once counts as begun for the first one
	x.press("mine\n")
	x.expect("all answered")
	log := s.roost("show", id, "--journal").out
	for _, want := range []string{`"text":"left","by":"cli"`, `"text":"mine","by":"terminal"`} {
		if !strings.Contains(log, want) {
			t.Errorf("the log does not hold %s:\n%s", want, log)
		}
	}
	x.exits(0)
}

// Sockets with a path are the same ones in every network namespace: what runs in a
// container without a network can be answered.
func TestAQuestionIsAnsweredFromAnotherNetworkNamespace(t *testing.T) {
	t.Parallel()
	if out, err := exec.Command("unshare", "-rn", "true").CombinedOutput(); err != nil {
		t.Skipf("no namespaces here: %v %s", err, out)
	}
	s := newSandbox(t).reachable()
	x := s.onTerminal("run", "--provider", "script", "--model", s.script(twoQuestions), "-C", s.ws, "--yes", "ask me")
	for _, answer := range []string{"left", "up"} {
		x.expect("your own words")
		id := s.list()[0].ID
		cmd := s.command("send", id, answer)
		cmd.Path, cmd.Args = unshared(t), append([]string{"unshare", "-rn", cmd.Path}, cmd.Args[1:]...)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("got %v\n%s, want no error", err, out)
		}
	}
	x.expect("all answered")
	x.exits(0)
}

func unshared(t *testing.T) string {
	t.Helper()
	path, err := exec.LookPath("unshare")
	must(t, err)
	return path
}
