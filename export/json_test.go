package export

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/internal/testing/fixture"
	"github.com/roost-dev/roost/redact"
)

// Spellings that decoding and encoding would lose.
const oddUI = `[{"ts":1776200000000,"type":"say","say":"text","text":"w\u006frds","1":1.0,"odd":"\ud800"}, {"ts":1776200000001,"type":"say","say":"text","text":"more","big":12345678901234567890}]`

func TestJSONKeepsElementsByteForByte(t *testing.T) {
	v := newStorage(t, folder(oddUI, `[{"role":"user","content":"x","ts":1}]`)).open("t1")
	var out bytes.Buffer
	r, err := JSON(t.Context(), &out, v, Options{Mask: redact.New()})
	fixture.NoError(t, err)
	if r.Masked != 0 || len(r.Unread) > 0 {
		t.Errorf("report %+v", r)
	}
	for _, element := range []string{
		`{"ts":1776200000000,"type":"say","say":"text","text":"w\u006frds","1":1.0,"odd":"\ud800"}`,
		`{"ts":1776200000001,"type":"say","say":"text","text":"more","big":12345678901234567890}`,
		`{"role":"user","content":"x","ts":1}`,
	} {
		if !strings.Contains(out.String(), "\n"+element) {
			t.Errorf("%s is not in\n%s", element, out.String())
		}
	}
	var got struct {
		Task struct {
			ID    string
			Usage struct{ Cost string }
		}
		UI, API []json.RawMessage
		Unread  []api.Unread
		Masked  *int
	}
	fixture.NoError(t, json.Unmarshal(out.Bytes(), &got))
	if got.Task.ID != "t1" || len(got.UI) != 2 || len(got.API) != 1 || got.Unread == nil || got.Masked == nil {
		t.Errorf("got %+v", got)
	}
}

func TestJSONOfNoMessages(t *testing.T) {
	v := newStorage(t, folder("[]", "[]")).open("t1")
	var out bytes.Buffer
	_, err := JSON(t.Context(), &out, v, Options{})
	fixture.NoError(t, err)
	var got struct{ UI, API []any }
	fixture.NoError(t, json.Unmarshal(out.Bytes(), &got))
	if got.UI == nil || len(got.UI) != 0 || got.API == nil {
		t.Errorf("got %s", out.String())
	}
}

// Secrets hide in the text of a row, in JSON within that text, in names, and behind
// escapes. Only the strings that hold one change.
func TestMaskedJSON(t *testing.T) {
	pem := `-----BEGIN PRIVATE KEY-----\n` + strings.Repeat(keyBody+`\n`, 8) + `-----END PRIVATE KEY-----`
	cases := []struct{ name, raw, want string }{
		{"nothing", `{"a" : "b\u0041", "n":1e3}`, `{"a" : "b\u0041", "n":1e3}`},
		{"value", `{"a":"key ` + secret + `","b" : "\u0041"}`, `{"a":"key ` + masked + `","b" : "\u0041"}`},
		{"name", `{"` + secret + `":1}`, `{"` + masked + `":1}`},
		{"escape", `["\u0073k-ant-` + keyBody + `"]`, `["` + masked + `"]`},
		{"within JSON", `{"text":"{\"k\":\"` + secret + `\", \"z\":1.0}"}`, `{"text":"{\"k\":\"` + masked + `\", \"z\":1.0}"}`},
		{"line breaks", `["` + pem + `"]`, `["[REDACTED:private-key]"]`},
		{"line breaks within JSON", `["{\"k\":\"` + strings.ReplaceAll(pem, `\`, `\\`) + `\"}"]`, `["{\"k\":\"[REDACTED:private-key]\"}"]`},
		{"quote before", `["say \"` + secret + `\""]`, `["say \"` + masked + `\""]`},
		{"lone surrogate beside it", `["\ud800 ` + secret + `"]`, `["\ud800 ` + masked + `"]`},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			m := mask{by: redact.New()}
			if got := string(m.json([]byte(c.raw))); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
			if (m.count > 0) != (c.raw != c.want) {
				t.Errorf("%d masked", m.count)
			}
		})
	}
	none := mask{}
	if raw := `["` + secret + `"]`; string(none.json([]byte(raw))) != raw {
		t.Error("masked without a redactor")
	}
}

func FuzzMaskedJSON(f *testing.F) {
	f.Add([]byte(`{"a":"` + secret + `"}`))
	f.Add([]byte(`["\\","\"","{\"a\":\"\\u0000\"}"]`))
	by := redact.New()
	f.Fuzz(func(t *testing.T, raw []byte) {
		if !json.Valid(raw) {
			return
		}
		m := mask{by: by}
		got := m.json(raw)
		if !json.Valid(got) {
			t.Fatalf("%q became %q", raw, got)
		}
		if m.count == 0 && !bytes.Equal(got, raw) {
			t.Fatalf("%q changed to %q and nothing was masked", raw, got)
		}
		// In the middle of a longer word it is no key.
		if bytes.Contains(got, []byte(`"`+secret+`"`)) {
			t.Fatalf("%q is left in %q", secret, got)
		}
	})
}
