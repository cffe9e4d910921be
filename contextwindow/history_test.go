package contextwindow

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/internal/testing/conformance"
	"github.com/roost-dev/roost/llm"
	"github.com/roost-dev/roost/task"
)

// brief makes messages of a short notation: u or a for the role, then a letter that is
// its text, then tags: cX = condensed by X, tX = truncated by X, SX = summary X, MX =
// marker X. "ux cX" is a user's "x", hidden by X.
func brief(t *testing.T, notation string) (out [][]byte) {
	t.Helper()
	for i, word := range strings.Split(notation, ", ") {
		fields := strings.Fields(word)
		role := map[byte]string{'u': "user", 'a': "assistant"}[fields[0][0]]
		var o esjson.Object
		o.String("role", role)
		o.String("content", fields[0][1:])
		o.Int("ts", int64(10*(i+1)))
		for _, tag := range fields[1:] {
			id := tag[1:]
			switch tag[0] {
			case 'c':
				o.String("condenseParent", id)
			case 't':
				o.String("truncationParent", id)
			case 'S':
				o.Bool("isSummary", true)
				o.String("condenseId", id)
			case 'M':
				o.Bool("isTruncationMarker", true)
				o.String("truncationId", id)
			default:
				t.Fatalf("no tag %q", tag)
			}
		}
		out = append(out, o.Bytes())
	}
	return out
}

// texts is the notation of messages without their tags.
func texts(messages [][]byte) string {
	var out []string
	for _, m := range messages {
		r := readTags(m)
		text := esjson.Text(r.content)
		if esjson.TypeOf(r.content) == esjson.TypeArray {
			for _, b := range blocks(r.content) {
				text += esjson.TextOf(b, "text")
			}
		}
		out = append(out, r.role[:1]+text)
	}
	return strings.Join(out, ", ")
}

func TestEffective(t *testing.T) {
	for _, tt := range []struct{ name, in, want string }{
		{"nothing hidden", "u1, a2, u3", "u1, a2, u3"},
		{"a summary hides what it names", "u1 cX, a2 cX, uS SX, a4", "uS, a4"},
		{"and what it does not name", "u1, a2, uS SX, a4", "uS, a4"},
		{"the newest one counts", "u1 cX, uS SX cY, a3 cY, uT SY, a5", "uT, a5"},
		{"a summary that is gone hides nothing", "u1 cX, a2 cX, u3", "u1, a2, u3"},
		{"a marker hides what it names", "u1, a2 tX, u3 tX, uM MX, a5", "u1, uM, a5"},
		{"a marker that is gone hides nothing", "u1, a2 tX, u3 tX, a5", "u1, a2, u3, a5"},
		{"two markers", "u1, a2 tX, u3 tX, uM MX, a5 tY, u6 tY, uN MY, a8", "u1, uM, uN, a8"},
		{"a marker behind a summary", "u1 cX, uS SX, a3 tT, u4 tT, uM MT, a6", "uS, uM, a6"},
		{"a marker that the summary hides hides nothing", "u1, uM MT cX, uS SX, a3 tT, u4", "uS, a3, u4"},
	} {
		if got := texts(Effective(brief(t, tt.in))); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
		// What is sent hides the same: the request never holds what Roo hides.
		messages, _, err := Build(brief(t, tt.in), Options{})
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range brief(t, tt.in) {
			r := readTags(m)
			shown, sent := strings.Contains(", "+tt.want+",", ", "+r.role[:1]+esjson.Text(r.content)+","), strings.Contains(show(messages), string(r.content))
			if shown != sent {
				t.Errorf("%s: %s is sent: %v", tt.name, r.content, sent)
			}
		}
	}
}

func TestEffectiveDropsResultsBeforeTheSummary(t *testing.T) {
	h := lines(
		`{"role":"assistant","content":[{"type":"tool_use","id":"old","name":"n","input":{}}]}`,
		`{"role":"user","content":"S","isSummary":true,"condenseId":"X"}`,
		`{"role":"user","content":[{"type":"tool_result","tool_use_id":"old","content":"r"}]}`,
		`{"role":"user","content":[{"type":"tool_result","tool_use_id":"old","content":"r"},{"type":"text","text":"kept"}],"ts":5}`,
		`{"role":"assistant","content":[{"type":"tool_use","id":"new","name":"n","input":{}}]}`,
		`{"role":"user","content":[{"type":"tool_result","tool_use_id":"new","content":"r"}]}`,
	)
	want := append(slices.Clone(h[1:2]), []byte(`{"role":"user","content":[{"type":"text","text":"kept"}],"ts":5}`), h[4], h[5])
	if diff := cmp.Diff(string(conformance.Array(want)), string(conformance.Array(Effective(h)))); diff != "" {
		t.Error(diff)
	}
}

// The summary says nothing of a result that came after it. Its call is gone, so the model
// is told it in words.
func TestAResultBehindTheSummaryOfItsCallIsTold(t *testing.T) {
	messages, _, err := Build(lines(
		`{"role":"assistant","content":[{"type":"tool_use","id":"old","name":"n","input":{}}],"condenseParent":"X"}`,
		`{"role":"user","content":"S","isSummary":true,"condenseId":"X"}`,
		`{"role":"user","content":[{"type":"tool_result","tool_use_id":"old","content":"r"},{"type":"text","text":"more"}]}`,
	), Options{})
	if err != nil {
		t.Fatal(err)
	}
	want := `user [{"type":"text","text":"S"},{"type":"text","text":"Tool result:\nr"},{"type":"text","text":"more"}]`
	if got := strings.TrimSpace(show(messages)); got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// After a rewind the summary may be gone: what it hid is seen again, and what another
// one hides is not.
func TestCleanup(t *testing.T) {
	for in, want := range map[string]string{
		"u1 cX, a2 cX":                  "u1, a2",
		"u1 tX, a2 tX":                  "u1, a2",
		"u1 cX tT, a2, uM MT":           "u1 tT, a2, uM MT",
		"u1 cX tT, uS SX":               "u1 cX, uS SX",
		"u1 cX, uS SX, a3 tT, uM MT":    "u1 cX, uS SX, a3 tT, uM MT",
		"u1 cX, uS SX cY, a3 cY, uT SZ": "u1 cX, uS SX, a3, uT SZ",
	} {
		got := Cleaned(t, brief(t, in))
		if diff := cmp.Diff(string(conformance.Array(brief(t, want))), string(conformance.Array(got))); diff != "" {
			t.Errorf("%s: got %s, want diff = \"\"", in, diff)
		}
		if again := Cleaned(t, got); !cmp.Equal(again, got) {
			t.Errorf("%s: cleaned twice: %s", in, conformance.Array(again))
		}
	}
}

// A model never sees two turns of the person's in a row.
func TestUsersAreJoined(t *testing.T) {
	for in, want := range map[string]string{
		"u1, u2, a3, u4, u5, u6": "u12, a3, u456",
		"u1, a2, a3, u4":         "u1, a23, u4",
		"u1, uM MX, u3":          "u1M3",
		"u1, uS SX, u3":          "uS3",
		"u1, u2 cX":              "u12",
	} {
		messages, _, err := Build(brief(t, in), Options{})
		if err != nil {
			t.Fatal(err)
		}
		if got := texts(sentAs(messages)); got != want {
			t.Errorf("%s: %s, want %s", in, got, want)
		}
	}
}

// sentAs is a request as messages of a history.
func sentAs(messages []llm.Message) (out [][]byte) {
	for _, m := range messages {
		var o esjson.Object
		o.String("role", m.Role)
		o.Raw("content", m.Content)
		out = append(out, o.Bytes())
	}
	return out
}

func TestTruncate(t *testing.T) {
	for _, tt := range []struct {
		in       string
		fraction float64
		want     string
		removed  int
	}{
		{"u1, a2, u3, a4, u5, a6", 0.5, "u1, uM, a4, u5, a6", 2},
		{"u1, a2, u3, a4, u5, a6", 1, "u1, uM, a6", 4},
		{"u1, a2, u3", 1, "u1, uM", 2},
		{"u1, a2, u3", 0.5, "u1, a2, u3", 0}, // one of two: not even
		{"u1, a2, u3, a4, u5", 0, "u1, a2, u3, a4, u5", 0},
		{"u1", 1, "u1", 0},
		{"u1, a2, u3, a4, u5, a6", -1, "u1, a2, u3, a4, u5, a6", 0},
		{"u1, a2 tX, u3 tX, uM MX, a5, u6, a7, u8", 0.5, "u1, uM, uM, a7, u8", 2},
		{"u1 cX, a2 cX, uS SX, a4, u5, a6, u7", 0.5, "uS, uM, a6, u7", 2},
	} {
		in := brief(t, tt.in)
		state := held(t, in)
		removed := truncate(t, state, in, tt.fraction, "NEW", 999)
		got := side(t, state)
		var shown []string
		for _, m := range Effective(got) {
			text := texts([][]byte{m})
			if readTags(m).marker {
				text = "uM"
			}
			shown = append(shown, text)
		}
		if s := strings.Join(shown, ", "); s != tt.want || removed != tt.removed {
			t.Errorf("%s by %v: %s (%d), want %s (%d)", tt.in, tt.fraction, s, removed, tt.want, tt.removed)
		}
		if removed == 0 {
			continue
		}
		// Taking it back brings everything back, byte for byte.
		then(t, state, task.HistoryTruncated{Undoes: state.Seq})
		if undone := side(t, state); !cmp.Equal(undone, in) {
			t.Errorf("%s: undone gives %s", tt.in, conformance.Array(undone))
		}
	}
}

// genTagged draws histories in which summaries and markers come, go, and hide each
// other.
func genTagged(t *rapid.T) (out [][]byte) {
	ids := rapid.SampledFrom([]string{"X", "Y", "Z", ""})
	for i := range rapid.IntRange(0, 10).Draw(t, "messages") {
		tags := ""
		switch rapid.IntRange(0, 7).Draw(t, "tag") {
		case 0:
			tags = fmt.Sprintf(`,"isSummary":true,"condenseId":%q`, ids.Draw(t, "id"))
		case 1:
			tags = fmt.Sprintf(`,"isTruncationMarker":true,"truncationId":%q`, ids.Draw(t, "id"))
		case 2:
			tags = fmt.Sprintf(`,"condenseParent":%q`, ids.Draw(t, "id"))
		case 3:
			tags = fmt.Sprintf(`,"truncationParent":%q`, ids.Draw(t, "id"))
		}
		role := rapid.SampledFrom([]string{"user", "assistant"}).Draw(t, "role")
		out = append(out, fmt.Appendf(nil, `{"role":%q,"content":"m%d","ts":%d%s}`, role, i, i, tags))
	}
	return out
}

func TestHidingProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := genTagged(t)
		same := func(what string, a, b [][]byte) {
			if string(conformance.Array(a)) != string(conformance.Array(b)) {
				t.Fatalf("%s\n%s\n%s\nof %s", what, conformance.Array(a), conformance.Array(b), conformance.Array(h))
			}
		}
		shown := Effective(h)
		same("what is shown is shown again", shown, Effective(shown))
		cleaned := Cleaned(t, h)
		same("cleaning twice", cleaned, Cleaned(t, cleaned))
		if len(cleaned) != len(h) {
			t.Fatal("cleaning removed a message")
		}
		out, removed := Truncated(t, h, rapid.Float64Range(0, 1).Draw(t, "fraction"), "NEW", 1)
		if removed%2 != 0 || removed < 0 || removed > 0 && len(out) != len(h)+1 || removed == 0 && len(out) != len(h) {
			t.Fatalf("%d removed, %d became %d", removed, len(h), len(out))
		}
		if len(shown) > 0 && len(Effective(out)) > 0 && removed > 0 && string(Effective(out)[0]) != string(shown[0]) && !readTags(shown[0]).marker {
			t.Fatalf("the first message is hidden: %s", conformance.Array(out))
		}
	})
}

// Tags are read as ECMAScript reads them: other programs wrote 1, or "true".
func TestTruthyTags(t *testing.T) {
	for value, want := range map[string]bool{
		`true`: true, `false`: false, `null`: false, `1`: true, `0`: false, `-0`: false, `0.0`: false, `0e5`: false, `-0.0E+1`: false, `0.5`: true, `1e-7`: true, `10`: true, `1e-999`: false, `1e999`: true,
		`""`: false, `"false"`: true, `" "`: true, `{}`: true, `[]`: true,
	} {
		h := lines(`{"role":"user","content":"a"}`, `{"role":"user","content":"S","isSummary":`+value+`,"condenseId":"X"}`)
		if got := texts(Effective(h)) == "uS"; got != want {
			t.Errorf("isSummary %s is %v", value, got)
		}
		h = lines(`{"role":"user","content":"a","truncationParent":"T"}`, `{"role":"user","content":"M","isTruncationMarker":`+value+`,"truncationId":"T"}`)
		if got := texts(Effective(h)) == "uM"; got != want {
			t.Errorf("isTruncationMarker %s is %v", value, got)
		}
	}
}

// Build sends what Effective shows, and nothing that it hides, whatever tags stand in
// what order.
func TestBuildSendsWhatEffectiveShows(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := genTagged(t)
		want := map[string]bool{}
		for _, m := range Effective(h) {
			want[esjson.Text(readTags(m).content)] = true
		}
		messages, _, err := Build(h, Options{})
		if err != nil && len(want) > 0 {
			t.Fatal(err)
		}
		got := map[string]bool{}
		for _, m := range messages {
			for _, b := range blocks(m.Content) {
				if text := esjson.TextOf(b, "text"); strings.HasPrefix(text, "m") {
					got[text] = true
				}
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("got %s\n%s, want diff = \"\"", conformance.Array(h), diff)
		}
	})
}
