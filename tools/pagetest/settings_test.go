package pagetest

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/network"
)

const goodKey = "sk-ant-api03-the-key-of-this-test-0123456789"

// provider is a provider on this machine that knows one key, and counts the requests.
func provider(t *testing.T) (address string, asked *atomic.Int32) {
	t.Helper()
	asked = &atomic.Int32{}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		_, _ = io.Copy(io.Discard, r.Body)
		if r.Header.Get("X-Api-Key") != goodKey {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusUnauthorized)
			fmt.Fprint(w, `{"type":"error","error":{"type":"authentication_error","message":"invalid x-api-key"}}`)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		for _, data := range []string{
			`{"type":"message_start","message":{"id":"m","type":"message","role":"assistant","model":"claude-sonnet-5-5","content":[],"usage":{"input_tokens":20,"output_tokens":1}}}`,
			`{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`,
			`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"ready"}}`,
			`{"type":"content_block_stop","index":0}`,
			`{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":3}}`,
			`{"type":"message_stop"}`,
		} {
			var kind struct{ Type string }
			_ = json.Unmarshal([]byte(data), &kind)
			fmt.Fprintf(w, "event: %s\ndata: %s\n\n", kind.Type, data)
		}
	}))
	t.Cleanup(s.Close)
	return s.URL, asked
}

// keyHouse is a house whose Anthropic is the provider of this test.
func keyHouse(t *testing.T) (*house, *atomic.Int32) {
	t.Helper()
	address, asked := provider(t)
	return newHouseIn(t, around{env: []string{"ANTHROPIC_BASE_URL=" + address, "ANTHROPIC_API_KEY=", "OPENAI_API_KEY=", "GEMINI_API_KEY=", "GOOGLE_API_KEY="}}), asked
}

const (
	keyForm  = `form[data-act="PUT /v1/providers/anthropic/key"]`
	testForm = `form[data-act="POST /v1/providers/anthropic/test"]`
)

// A person without a key and without a task is led to both, on a phone; nothing is sent before the button.
func TestFirstStart(t *testing.T) {
	t.Parallel()
	h, asked := keyHouse(t)
	tab := h.loggedIn(phone, "/")
	tab.live()
	tab.text(".setup h2", "Set up a model")
	tab.press(`.providers a[href="/start?provider=anthropic"]`)
	tab.text(".steps", "Paste a key")
	tab.press(keyForm + " [name=key]")
	tab.types("not a key of it")
	tab.press(keyForm + " button")
	tab.text(keyForm+" output.bad", "blanks")
	tab.press(keyForm + " [name=key]")
	run[bool](tab, `(document.querySelector('`+keyForm+` [name=key]').value = '', true)`)
	tab.types(goodKey)
	tab.press(keyForm + " button")
	tab.text(".steps", "ends in "+goodKey[len(goodKey)-4:])
	tab.text(".steps", "at most $0.00")
	if n := asked.Load(); n != 0 {
		t.Errorf("got %d requests before the button was pressed, want none", n)
	}
	tab.press(testForm + " button")
	tab.text(testForm+" output.good", "claude-sonnet-5-5 answered “ready”")
	if n := asked.Load(); n != 1 {
		t.Errorf("got %d requests, want 1", n)
	}
	tab.press(testForm + " output a")
	tab.text("dialog h2", "Start a task")
	if text := run[string](tab, `document.documentElement.outerHTML`); strings.Contains(text, goodKey) {
		t.Error("the page holds the key")
	}
}

// The provider refuses the key: the page names the likely cause.
func TestWrongKey(t *testing.T) {
	t.Parallel()
	h, _ := keyHouse(t)
	tab := h.loggedIn(desktop, "/start?provider=anthropic")
	tab.live2()
	tab.press(keyForm + " [name=key]")
	tab.types("sk-1234567890123456789012345")
	tab.press(keyForm + " button")
	tab.text(keyForm+" output.bad", "keys of anthropic begin with sk-ant-")
	tab.press(keyForm + " [name=force]")
	tab.press(keyForm + " button")
	tab.text(".steps", "ends in 2345")
	tab.press(testForm + " button")
	tab.text(testForm+" output.bad", "The provider refused the key")
	tab.text(testForm+" output.bad", "roost auth set anthropic")
}

// live2 waits until the forms of a page without events work.
func (t *tab) live2() {
	t.Helper()
	t.live() // the bar on top has its last button then, which moves what is below it on a phone
	t.sees("the forms work", `[...document.querySelectorAll('form.do button')].every(b => !b.disabled)`)
}

// The default model is changed, shows its origin, and goes back to what it was.
func TestChangeDefaultModel(t *testing.T) {
	t.Parallel()
	h, _ := keyHouse(t)
	h.ask("PUT", "/v1/providers/anthropic/key", object{"key": goodKey}, nil)
	tab := h.loggedIn(desktop, "/")
	tab.live()
	tab.keys(",")
	tab.text("h1", "Settings")
	const row, other = `[data-setting=model]`, `[data-form=server] [name=line]`
	tab.press(other)
	tab.types("docs-server --root /docs")
	tab.press(row + " summary")
	tab.press(row + " input")
	tab.types("claude-opus-5-5")
	tab.press(row + " button")
	tab.text(row+" .now", "claude-opus-5-5")
	if got, want := run[string](tab, "document.querySelector('"+other+"').value"), "docs-server --root /docs"; got != want {
		t.Errorf("got %q in a form that was not sent, want %q as it was typed", got, want)
	}
	tab.text(row+" .origin", "config.toml:1")
	tab.text(".sum", "claude-opus-5-5")
	var made struct{ ID string }
	h.ask("POST", "/v1/tasks", object{"workspace": h.work, "message": object{"text": "paint"}}, &made)
	h.until("the new task asks the model", func() bool {
		var got struct{ Model string }
		h.ask("GET", "/v1/tasks/"+made.ID, nil, &got)
		return got.Model == "claude-opus-5-5"
	})
	tab.press(row + " .unset")
	tab.text(row+" .origin", "default")
}

// A value with characters that the page names is saved with the characters, when a line is added to it.
func TestNamedCharactersStay(t *testing.T) {
	t.Parallel()
	h, _ := keyHouse(t)
	hidden := "echo \u200f\u2066x"
	h.ask("PATCH", "/v1/settings", object{"set": object{"deny": []string{hidden}}}, nil)
	tab := h.loggedIn(desktop, "/settings")
	tab.live2()
	const row = `[data-setting=deny]`
	tab.press(row + " summary")
	tab.text(row+" .now", "echo ⟦U+200F⟧⟦U+2066⟧x")
	run[bool](tab, `(e => { e.focus(); e.setSelectionRange(e.value.length, e.value.length); return true })(document.querySelector('`+row+` textarea'))`)
	tab.types("\nrm")
	tab.press(row + " button")
	tab.text(row+" .now", "rm")
	var got struct {
		Items []struct {
			Key   string
			Value []string
		}
	}
	h.ask("GET", "/v1/settings", nil, &got)
	for _, item := range got.Items {
		if item.Key == "deny" && !slices.Equal(item.Value, []string{hidden, "rm"}) {
			t.Errorf("got %q, want %q and rm", item.Value, hidden)
		}
	}
}

// A rule that was added elsewhere while the page was open is shown, before the page saves a list without it.
func TestSettingChangedElsewhere(t *testing.T) {
	t.Parallel()
	h, _ := keyHouse(t)
	h.ask("PATCH", "/v1/settings", object{"set": object{"deny": []string{"rm"}}}, nil)
	tab := h.loggedIn(phone, "/settings")
	tab.live2()
	h.ask("PATCH", "/v1/settings", object{"set": object{"deny": []string{"rm", "curl"}}}, nil)
	const row = `[data-setting=deny]`
	tab.press(row + " summary")
	run[bool](tab, `(e => { e.focus(); e.setSelectionRange(e.value.length, e.value.length); return true })(document.querySelector('`+row+` textarea'))`)
	tab.types("\nssh")
	tab.press(row + " button")
	tab.text(row+" output", "changed elsewhere")
	tab.text(row+" .now", "rm, curl")
	tab.press(row + " textarea")
	tab.types("\ncurl")
	tab.press(row + " button")
	tab.text(row+" .now", "ssh")
	if got := run[string](tab, `document.querySelector('`+row+` .now').innerText`); !strings.Contains(got, "curl") {
		t.Errorf("got %q, want the rule from elsewhere, too", got)
	}
}

// An MCP server is added by its command line, is used from then on, and is removed.
func TestAddAndRemoveServer(t *testing.T) {
	t.Parallel()
	h, _ := keyHouse(t)
	tab := h.loggedIn(desktop, "/settings")
	tab.live2()
	tab.press(`[data-form=server] [name=name]`)
	tab.types("docs")
	tab.press(`[data-form=server] [name=line]`)
	tab.types(`docs-server --root "/my docs" --title='My  docs' C:\new ""`)
	tab.press(`[data-form=server] button`)
	tab.text("[data-server=docs]", "allowed")
	tab.text("[data-server=docs] .command", "/my docs")
	var list struct {
		Items []struct{ Name, State, Scope, Runs string }
	}
	h.ask("GET", "/v1/mcp-servers", nil, &list)
	if len(list.Items) != 1 || list.Items[0].Scope != "own" || list.Items[0].State != "allowed" {
		t.Errorf("got %+v, want the server docs of the user, allowed", list.Items)
	} else if want := `docs-server --root /my docs --title=My  docs C:\new `; list.Items[0].Runs != want {
		t.Errorf("got the command %q, want %q: quotes hold together, also within a word", list.Items[0].Runs, want)
	}
	tab.press(`[data-server=docs] button`)
	tab.gone("[data-server=docs]")
}

// A key is kept, shown by its end alone, and removed.
func TestKeepAndRemoveKey(t *testing.T) {
	t.Parallel()
	h, _ := keyHouse(t)
	tab := h.loggedIn(phone, "/settings")
	tab.live2()
	const card = `[data-provider=anthropic]`
	tab.press(card + " summary")
	tab.press(card + " [name=key]")
	tab.types(goodKey)
	tab.press(card + " " + keyForm + " button")
	tab.text(card, "…"+goodKey[len(goodKey)-4:])
	file := filepath.Join(filepath.Dir(h.root), ".config", "roost", "auth.toml")
	info, err := os.Stat(file)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("got %v, %v, want a file that only its owner may read", info, err)
	}
	if text := run[string](tab, `fetch('/v1/settings').then(r => r.text())`); strings.Contains(text, goodKey) {
		t.Error("the settings hold the key")
	}
	tab.press(card + ` form[data-act^=DELETE] button`)
	tab.text(card, "no key")
}

// A request that another server passed on cannot add a command or keep a key; the page shows the commands instead.
func TestElsewhereAddsNoCommand(t *testing.T) {
	t.Parallel()
	h, _ := keyHouse(t)
	for _, c := range []struct {
		method, path, body string
	}{
		{"POST", "/v1/mcp-servers", `{"name":"evil","command":"sh"}`},
		{"PUT", "/v1/providers/anthropic/key", `{"key":"` + goodKey + `"}`},
		{"PATCH", "/v1/settings", `{"set":{"linter":["sh"]}}`},
		{"PATCH", "/v1/settings", `{"set":{"hooks.x.command":["sh"]}}`},
		{"PATCH", "/v1/settings", `{"set":{"providers.anthropic.base_url":["http://127.0.0.1:1"]}}`},
		{"POST", "/v1/sources", `{"path":"/tmp"}`},
	} {
		r, err := http.NewRequestWithContext(t.Context(), c.method, "http://"+h.listen+c.path, strings.NewReader(c.body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+h.token)
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("X-Forwarded-For", "192.0.2.7")
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		text, _ := io.ReadAll(answer.Body)
		_ = answer.Body.Close()
		if answer.StatusCode != http.StatusForbidden || !strings.Contains(string(text), `"not_from_here"`) || strings.Contains(string(text), goodKey) {
			t.Errorf("%s %s: got %s %s, want 403 not_from_here", c.method, c.path, answer.Status, text)
		}
	}
	tab := h.loggedIn(desktop, "/")
	tab.do("come through another server", command(network.SetExtraHTTPHeaders, network.SetExtraHTTPHeadersParams{
		Headers: network.Headers{"X-Forwarded-For": json.RawMessage(`"192.0.2.7"`)},
	}))
	tab.visit("/settings")
	tab.text("#servers", "roost mcp add NAME -- COMMAND")
	tab.gone(`[data-form=server]`)
	tab.gone(keyForm)
	if n := run[int](tab, `document.querySelectorAll('[data-setting=model] form.do').length`); n != 1 {
		t.Errorf("got %d forms for the model, want 1: its name leads nothing elsewhere", n)
	}
}

// Settings and first steps fit the window in both colour schemes and sizes.
func TestPicturesOfSettings(t *testing.T) {
	t.Parallel()
	h, _ := keyHouse(t)
	h.ask("POST", "/v1/mcp-servers", object{"name": "docs", "command": "docs-server", "args": []string{"--stdio", strings.Repeat("x", 90)}}, nil)
	tab := h.loggedIn(desktop, "/")
	for name, s := range map[string]size{"desktop": desktop, "phone": phone} {
		for _, scheme := range []string{"light", "dark"} {
			tab.do("set the window", sized(s), command(emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
				Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}},
			}))
			for state, path := range map[string]string{"first": "/", "start": "/start?provider=anthropic", "settings": "/settings", "approvals": "/settings#approvals", "servers": "/settings#servers"} {
				tab.visit(path)
				tab.live2()
				tab.picture("page-" + state + "-" + name + "-" + scheme)
			}
		}
	}
}
