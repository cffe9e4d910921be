package wire

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/roost-dev/roost/llm"
)

// A refusal of something before the first message, such as the system prompt, is about
// none of them.
func TestLocateBeforeTheFirstMessage(t *testing.T) {
	var h History
	h.Add(new(Body), []llm.Message{{Role: "user", Content: []byte(`[{"type":"text","text":"a"}]`)}}, func(llm.Message) []byte { return []byte(`{"content":"a"}`) })
	for skip, want := range map[int]bool{0: true, 1: false, 2: false} {
		if message, block, ok := h.Locate("messages[0].content: not allowed", "messages", skip); ok != want {
			t.Errorf("behind %d others: message %d, block %d, %v", skip, message, block, ok)
		}
	}
}

// A history of which only the end is new is translated only there, and gives the same
// bytes as one that was never sent; messages without content are no reason to fail.
func TestHistoryTranslatesWhatIsNew(t *testing.T) {
	pool := [][]byte{[]byte(`"one"`), []byte(`"two"`), []byte(`"three"`), {}, nil}
	rapid.Check(t, func(t *rapid.T) {
		draw := func() (list []llm.Message) {
			for range rapid.IntRange(0, 5).Draw(t, "messages") {
				list = append(list, llm.Message{Role: rapid.SampledFrom([]string{"user", "assistant"}).Draw(t, "role"), Content: rapid.SampledFrom(pool).Draw(t, "content")})
			}
			return list
		}
		asked := 0
		translate := func(m llm.Message) []byte {
			asked++
			if string(m.Content) == `"two"` {
				return nil // left out
			}
			return []byte(m.Role + string(m.Content))
		}
		var h History
		before := draw()
		h.Add(new(Body), before, translate)
		now := draw()
		if rapid.Bool().Draw(t, "goes on") {
			now = append(append([]llm.Message{}, before...), now...)
		}
		asked = 0
		again, fresh := new(Body), new(Body)
		h.Add(again, now, translate)
		times := asked
		new(History).Add(fresh, now, translate)
		if d := cmp.Diff(string(fresh.Bytes()), string(again.Bytes())); d != "" {
			t.Fatal(d)
		}
		if strings.Contains(string(again.Bytes()), ",,") || strings.HasPrefix(string(again.Bytes()), ",") {
			t.Fatalf("a comma too many: %s", again.Bytes())
		}
		same := 0
		for same < len(before) && same < len(now) && len(now[same].Content) > 0 && before[same].Role == now[same].Role && string(before[same].Content) == string(now[same].Content) {
			same++
		}
		if times > len(now)-same {
			t.Fatalf("%d messages were translated, %d of %d are known", times, same, len(now))
		}
	})
}
