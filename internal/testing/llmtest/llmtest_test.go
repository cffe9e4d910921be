package llmtest_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/roost-dev/roost/internal/testing/llmtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func post(t *testing.T, s *llmtest.Server, body string) (*http.Response, string, error) {
	t.Helper()
	r, err := http.NewRequest("POST", s.URL+"/v1/messages", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("content-type", "application/json")
	r.Header.Set("x-api-key", "k")
	r.Header.Set("anthropic-version", "2023-06-01")
	tr := &http.Transport{}
	defer tr.CloseIdleConnections()
	res, err := (&http.Client{Transport: tr}).Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	return res, string(b), err
}

func messages(ms string) string {
	return `{"model":"m","max_tokens":9000,"stream":true,"messages":` + ms + `}`
}

const hi = `[{"role":"user","content":"hi"}]`

func TestStreamHasTheDocumentedShape(t *testing.T) {
	s := llmtest.New(t, llmtest.Text("ok").AndCall("t1", "f", `{"a":1}`))
	res, body, err := post(t, s, messages(hi))
	if err != nil || res.StatusCode != 200 || !strings.HasPrefix(res.Header.Get("content-type"), "text/event-stream") {
		t.Fatal(res, err)
	}
	var names []string
	for _, l := range strings.Split(body, "\n") {
		if n, ok := strings.CutPrefix(l, "event: "); ok {
			names = append(names, n)
			continue
		}
		if l != "" && !strings.HasPrefix(l, `data: {"type":"`+names[len(names)-1]+`"`) {
			t.Errorf("%s carries %s", names[len(names)-1], l)
		}
	}
	want := "message_start content_block_start ping content_block_delta content_block_stop content_block_start content_block_delta content_block_delta content_block_stop message_delta message_stop"
	if got := strings.Join(names, " "); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if !strings.Contains(body, `"stop_reason":"tool_use"`) {
		t.Error("no stop reason")
	}
}

func TestBrokenRulesAreRefused(t *testing.T) {
	call := `{"role":"assistant","content":[{"type":"tool_use","id":"t1","name":"f","input":{}}]}`
	result := `{"type":"tool_result","tool_use_id":"t1","content":"x"}`
	for _, c := range []struct{ body, want string }{
		{messages(hi), ""},
		{messages(`[{"role":"user","content":"a"},` + call + `,{"role":"user","content":[` + result + `,{"type":"text","text":"x"}]}]`), ""},
		{`{`, "not valid JSON"},
		{messages(`[]`), "at least one"},
		{messages(`[{"role":"user","content":""}]`), "non-empty"},
		{messages(`[{"role":"user","content":[]}]`), "non-empty"},
		{messages(`[{"role":"user","content":[{"type":"text","text":" \n"}]}]`), "non-whitespace"},
		{messages(`[{"role":"system","content":"x"}]`), "role"},
		{messages(`[{"role":"assistant","content":"x"}]`), "first message"},
		{messages(`[{"role":"user","content":"a"},{"role":"assistant","content":"b"}]`), "final message"},
		{messages(`[{"role":"user","content":"a"},` + call + `]`), "without `tool_result`"},
		{messages(`[{"role":"user","content":"a"},` + call + `,{"role":"user","content":"b"}]`), "without `tool_result`"},
		{messages(`[{"role":"user","content":"a"},` + call + `,{"role":"user","content":[{"type":"text","text":"x"},` + result + `]}]`), "come first"},
		{messages(`[{"role":"user","content":"a"},` + call + `,{"role":"user","content":[` + result + `,` + result + `]}]`), "unexpected `tool_use_id`"},
		{messages(`[{"role":"user","content":[` + result + `]}]`), "unexpected `tool_use_id`"},
		{messages(`[{"role":"user","content":[{"type":"reasoning","text":"x"}]}]`), "does not match"},
		{messages(`[{"role":"user","content":"a"},{"role":"assistant","content":[{"type":"tool_use","id":"a b","name":"f","input":{}}]}]`), "pattern"},
		{messages(`[{"role":"user","content":"a"},{"role":"assistant","content":[{"type":"thinking","thinking":"x"}]},{"role":"user","content":"a"}]`), "signature"},
		{strings.Replace(messages(hi), `"max_tokens":9000`, `"max_tokens":0`, 1), "max_tokens"},
		{strings.Replace(messages(hi), `"stream"`, `"tools":[{"name":"a","input_schema":{}},{"name":"a","input_schema":{}}],"stream"`, 1), "unique"},
		{strings.Replace(messages(hi), `"stream"`, `"thinking":{"type":"enabled","budget_tokens":9000},"stream"`, 1), "budget"},
		{messages(`[{"role":"user","content":[` + strings.Repeat(`{"type":"text","text":"x","cache_control":{"type":"ephemeral"}},`, 5) + `{"type":"text","text":"x"}]}]`), "maximum of 4"},
	} {
		s := llmtest.New(t, llmtest.Text("ok"))
		s.Tolerate = true
		res, body, _ := post(t, s, c.body)
		if ok := c.want == ""; (res.StatusCode == 200) != ok || (len(s.Violations()) == 0) != ok || !ok && (res.StatusCode != 400 || !strings.Contains(body, `"type":"invalid_request_error"`) || !strings.Contains(s.Violations()[0], c.want)) {
			t.Errorf("%s\ngot %d %s %q, want %q", c.body, res.StatusCode, body, s.Violations(), c.want)
		}
	}
}

// recorder replaces a test that must fail.
type recorder struct {
	errors  []string
	cleanup []func()
}

func (r *recorder) Helper()                   {}
func (r *recorder) Cleanup(f func())          { r.cleanup = append(r.cleanup, f) }
func (r *recorder) Errorf(f string, a ...any) { r.errors = append(r.errors, fmt.Sprintf(f, a...)) }
func (r *recorder) Fatalf(f string, a ...any) { r.Errorf(f, a...) }

func TestViolationsFailTheTest(t *testing.T) {
	r := &recorder{}
	s := llmtest.New(r, llmtest.Text("only one"))
	post(t, s, messages(hi))
	post(t, s, messages(hi))
	post(t, s, messages(`[]`))
	for _, f := range r.cleanup {
		f()
	}
	if len(r.errors) != 2 || !strings.Contains(r.errors[0], "no reply left") || !strings.Contains(r.errors[1], "at least one") {
		t.Errorf(`got %q, want len(r.errors) = 2 and strings.Contains(r.errors[0], "no reply left") and strings.Contains(r.errors[1], "at least one")`,
			r.errors)
	}
	if len(s.Requests()) != 3 {
		t.Errorf("%d requests", len(s.Requests()))
	}
}

func TestFaults(t *testing.T) {
	s := llmtest.New(t, llmtest.Fail(429, "slow").After("retry-after", "2"), llmtest.Text("a").CutByte(50), llmtest.Text("a").CutEvent(3).Broken(),
		llmtest.Text("a").ErrorEvent(2, "overloaded_error", "Overloaded"), llmtest.Text("a").Trickle(100, 5*time.Millisecond))
	res, body, _ := post(t, s, messages(hi))
	if res.StatusCode != 429 || res.Header.Get("retry-after") != "2" || !strings.Contains(body, "rate_limit_error") {
		t.Error(res, body)
	}
	if _, body, err := post(t, s, messages(hi)); err != nil || len(body) != 50 {
		t.Errorf("cut: %d bytes, %v", len(body), err)
	}
	if _, _, err := post(t, s, messages(hi)); err == nil {
		t.Error("a broken connection reads as a whole one")
	}
	if _, body, _ := post(t, s, messages(hi)); !strings.HasSuffix(body, `"message":"Overloaded"}}`+"\n\n") || strings.Contains(body, "message_stop") {
		t.Error(body)
	}
	begin := time.Now()
	if _, body, err := post(t, s, messages(hi)); err != nil || !strings.Contains(body, "message_stop") || time.Since(begin) < 30*time.Millisecond {
		t.Error(body, err, time.Since(begin))
	}
}

func TestCloseEndsAStalledAnswer(t *testing.T) {
	s := llmtest.New(nil, llmtest.Text("a").Stall(2))
	time.AfterFunc(50*time.Millisecond, s.Close)
	if _, body, _ := post(t, s, messages(hi)); strings.Contains(body, "message_stop") {
		t.Error(body)
	}
	s.Close()
}

func ExampleServe() {
	s, err := llmtest.Serve("127.0.0.1:0", llmtest.Call("t1", "list_files", `{"path":"."}`), llmtest.Text("Done."))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer s.Close()
	// Give s.URL to a child process as its base URL, kill it, look at s.Requests.
	fmt.Println(len(s.Requests()), len(s.Violations()))
	// Output: 0 0
}
