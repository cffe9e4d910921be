package resume

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/roost-dev/roost/contextwindow"
	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/internal/testing/apirules"
	"github.com/roost-dev/roost/internal/testing/conformance"
)

// markAnswered does what Roo does to older questions and we do not.
func markAnswered(ui [][]byte, kind string) (out [][]byte, marked bool) {
	out = append(out, ui...)
	mark := func(ask string) {
		for i := len(out) - 1; i >= 0; i-- {
			if done, _ := esjson.GetBool(out[i], "isAnswered"); isKind(out[i], "ask", ask) && !done {
				out[i], marked = esjson.Set(out[i], "isAnswered", []byte("true")), true
				return
			}
		}
	}
	mark("followup")
	if kind == "yesButtonClicked" {
		mark("tool")
	}
	return out, marked
}

// badRequest: the newest request row is not readable, where Roo stops.
func badRequest(ui [][]byte) bool {
	for i := len(ui) - 1; i >= 0; i-- {
		if isKind(ui[i], "say", "api_req_started") {
			text := []byte(esjson.TextOf(ui[i], "text"))
			return len(text) > 0 && (!esjson.Valid(text) || esjson.TypeOf(text) == esjson.TypeNull)
		}
	}
	return false
}

// answered are the blocks of the words and images that came with an answer, as they are
// put into a user turn.
func answered(response conformance.Value) (blocks [][]byte) {
	if text := response.Str("text"); text != "" {
		blocks = append(blocks, textBlock("<user_message>\n"+text+"\n</user_message>"))
	}
	for _, im := range response.Get("images").Strings() {
		blocks = append(blocks, imageBlock(im))
	}
	return blocks
}

// Two sides are held against Roo's: the rows that a person sees, and what the model is sent
// once the answer is in the history. Nothing of what is stored of the model's side is
// changed by a resume, so its request is that of the history as it is, with the answer
// behind it.
func TestVectorsResume(t *testing.T) {
	conformance.Run(t, "resume", func(t *testing.T, c conformance.Case) (choice bool) {
		ui, api := c.Input.Get("ui").List(), c.Input.Get("api").List()
		response := c.Input.Get("response")
		p, blocks := Rows(ui), answered(response)
		if c.Want.Has("error") {
			whereRooFails(t, c.Want.Str("error"), ui, api)
			return true
		}
		if ask := c.Want.Str("ask"); ask != p.Ask {
			t.Errorf("asks %s, want %s", p.Ask, ask)
		}
		// Behind Roo's rows stand its question and the words of the answer.
		want := c.Want.Get("ui").List()
		for n := len(want) - 1; n >= 0; n-- {
			if asks := isResume(want[n]); asks || isKind(want[n], "say", "user_feedback") {
				want = want[:n]
				if asks {
					break
				}
			}
		}
		kept := carriedOut(ui, Plan{Hidden: p.Hidden})
		if marked, quirk := markAnswered(kept, response.Str("kind")); quirk && !esjson.Equal(conformance.Array(kept), conformance.Array(want)) {
			kept, choice = marked, true
		}
		c.Same(t, "ui", conformance.Array(kept), conformance.Array(want))
		if len(blocks) > 0 && response.Str("kind") != "messageResponse" {
			// Roo drops what came with the button; here it is sent, and all else is as without it.
			with := requested(t, api, blocks)
			for _, b := range blocks {
				same, err := esjson.Stringify(nil, b)
				if err != nil {
					t.Fatal(err)
				}
				if !strings.Contains(with, "  "+string(same)+"\n") {
					t.Errorf("%s is not sent: %.1500s", same, with)
				}
			}
			choice, blocks = true, nil
		}
		got, sent := requested(t, api, blocks), requested(t, c.Want.Get("api_after_append").List(), nil)
		if told := unknown(api); len(told) > 0 && got != sent {
			choice = true
			for _, line := range told {
				if !strings.Contains(got, line) {
					t.Errorf("a result without its call is not told as %s: %.1500s", line, got)
				}
				got = strings.Replace(got, line, "", 1)
			}
		}
		if got != sent {
			t.Errorf("what is sent differs\n got %.1500s\nwant %.1500s", got, sent)
		}
		return choice
	})
}

// unknown are the lines of a request that tell the results of the last message that answer
// no call of the one before it. Roo drops them.
func unknown(api [][]byte) (told []string) {
	if len(api) < 2 || esjson.TextOf(api[len(api)-1], "role") != "user" {
		return nil
	}
	var calls []string
	for _, b := range conformance.Value(api[len(api)-2]).Get("content").List() {
		calls = append(calls, esjson.TextOf(b, "id"))
	}
	for _, b := range conformance.Value(api[len(api)-1]).Get("content").List() {
		if esjson.TextOf(b, "type") == "tool_result" && !slices.Contains(calls, esjson.TextOf(b, "tool_use_id")) {
			told = append(told, fmt.Sprintf("  %s\n", textBlock("Tool result:\n"+esjson.TextOf(b, "content"))))
		}
	}
	return told
}

// requested is the request that a history with a new user turn makes, without what only says
// that it was interrupted.
func requested(t *testing.T, api, blocks [][]byte) string {
	t.Helper()
	if len(blocks) > 0 {
		api = append(api[:len(api):len(api)], fmt.Appendf(nil, `{"role":"user","content":%s}`, conformance.Array(blocks)))
	}
	built, _, err := contextwindow.Build(api, contextwindow.Options{})
	if err == nil {
		err = apirules.Validate(built)
	}
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, m := range built {
		fmt.Fprintln(&b, m.Role)
		for _, block := range contentOf(m.Content) {
			switch esjson.TextOf(block, "text") {
			case "[TASK RESUMPTION] Resuming task...", "Please continue.":
				continue
			}
			if esjson.TextOf(block, "content") == "Task was interrupted before this tool call could be completed." {
				block = esjson.Set(block, "content", esjson.Quote(nil, contextwindow.Interrupted))
			}
			same, err := esjson.Stringify(nil, block) // one spelling of every character
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(&b, "  %s\n", same)
		}
	}
	return b.String()
}

func contentOf(content []byte) [][]byte {
	if esjson.TypeOf(content) == esjson.TypeString {
		s, _ := esjson.Unquote(content)
		return [][]byte{textBlock(s)}
	}
	return conformance.Value(content).List()
}

// whereRooFails: a rule says why it does, and here the task goes on with what
// there is.
func whereRooFails(t *testing.T, failed string, ui, api [][]byte) {
	t.Helper()
	why := len(api) == 0 || badRequest(ui) || failed == "bad_last_role" &&
		esjson.TextOf(api[len(api)-1], "role") != "user" && esjson.TextOf(api[len(api)-1], "role") != "assistant"
	if !why {
		t.Errorf("Roo fails with %s and no rule says why", failed)
	}
	if len(api) > 0 {
		requested(t, api, [][]byte{textBlock("go on")})
		return
	}
	words := string(esjson.List(FirstWords(ui)))
	if len(ui) > 0 && esjson.TextOf(ui[0], "text") != "" && !strings.Contains(words, string(esjson.Quote(nil, "<user_message>\n"+esjson.TextOf(ui[0], "text")+"\n</user_message>"))) {
		t.Error(words)
	}
}

func textBlock(s string) []byte {
	return esjson.ObjectOf("type", "text", "text", s)
}
