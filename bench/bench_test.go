package main

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/llm"
	"github.com/roost-dev/roost/llm/anthropic"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("net/http.(*persistConn).readLoop"), goleak.IgnoreTopFunction("net/http.(*persistConn).writeLoop"))
}

func TestTimes(t *testing.T) {
	var hundred times
	for i := 100; i >= 1; i-- {
		hundred = append(hundred, time.Duration(i))
	}
	for _, c := range []struct {
		name        string
		in          times
		median, p99 time.Duration
	}{
		{"none", nil, 0, 0},
		{"one", times{7}, 7, 7},
		{"two", times{9, 1}, 1, 9},
		{"three, unsorted", times{3, 1, 2}, 2, 3},
		{"a hundred", hundred, 50, 99},
	} {
		if got := [2]time.Duration{c.in.median(), c.in.p99()}; got != [2]time.Duration{c.median, c.p99} {
			t.Errorf("%s: median and p99 %v, want %v", c.name, got, [2]time.Duration{c.median, c.p99})
		}
	}
	if hundred[0] != 100 {
		t.Error("taking a quantile changed the order of the samples")
	}
}

func TestQuantileSplits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var in times
		for _, d := range rapid.SliceOfN(rapid.Int64Range(0, 50), 1, 60).Draw(t, "samples") {
			in = append(in, time.Duration(d))
		}
		share := rapid.Float64Range(0.01, 1).Draw(t, "share")
		got, below, most := in.at(share), 0, 0
		for _, d := range in {
			if d < got {
				below++
			}
			if d <= got {
				most++
			}
		}
		n := float64(len(in))
		if float64(below) > share*n || float64(most)+1e-6 < share*n {
			t.Fatalf("at(%v) of %v is %v: %d below, %d not above", share, in, got, below, most)
		}
	})
}

func TestFormats(t *testing.T) {
	got := []string{
		over(time.Duration(3), time.Duration(2)), over(int64(1), int64(0)), over(int64(0), int64(5)),
		ms(1500 * time.Microsecond), mb(3 << 19),
	}
	if diff := cmp.Diff([]string{"1.50x", "-", "0.00x", "1.50 ms", "1.5 MB"}, got); diff != "" {
		t.Error(diff)
	}
	for _, c := range []struct {
		asked, digits string
		want          bool
	}{{"12345", "34", true}, {"4", "34", true}, {"1", "34", false}, {"", "1", false}} {
		if wanted(c.asked, c.digits) != c.want {
			t.Errorf("wanted(%q, %q) is not %v", c.asked, c.digits, c.want)
		}
	}
}

func TestStepIsWhatIsCounted(t *testing.T) {
	for _, size := range []int{1, 100, 2500, 20_000} {
		events, bytes := step(11, 4, size)
		ui, api := uiMessage(4, size), apiMessage(4, size)
		if len(events) != 2 || string(bytes) != string(ui)+string(api) {
			t.Fatalf("a step of %d is not its two messages", size)
		}
		for _, raw := range [][]byte{ui, api} {
			if !esjson.Valid(raw) || len(raw) < size {
				t.Errorf("message of %d bytes of text: %.80s", size, raw)
			}
		}
	}
	if string(uiMessage(1, 500)) == string(uiMessage(2, 500)) {
		t.Error("two messages are the same: a store that keeps equal payloads once would win")
	}
}

func TestFloorAppends(t *testing.T) {
	dir := t.TempDir()
	f, err := newFloor(dir, "x")
	if err != nil {
		t.Fatal(err)
	}
	defer f.close()
	for _, s := range []string{"ab", "", "cde"} {
		if err := f.add([]byte(s)); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(filepath.Join(dir, "x"))
	if err != nil || string(got) != "abcde" || len(f.taken) != 3 {
		t.Errorf("the file holds %q, %d times were taken, %v", got, len(f.taken), err)
	}
	if _, err := newFloor(dir, "x"); err == nil {
		t.Error("an old yardstick file was taken again")
	}
	f.close()
	if f.add([]byte("z")) == nil {
		t.Error("a failed append was counted")
	}
}

// TestModel talks to the model as the program does, and checks that its times
// stand in order.
func TestModel(t *testing.T) {
	m, err := startModel(2)
	if err != nil {
		t.Fatal(err)
	}
	ran := 0
	m.before = func() error { ran++; time.Sleep(20 * time.Millisecond); return nil }
	m.text = prose(3, 200)
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	p := anthropic.New(anthropic.Options{BaseURL: m.url, APIKey: "k", HTTPClient: client})
	var calls []string
	for range 3 {
		var text strings.Builder
		for chunk, err := range p.Stream(context.Background(), llm.Request{Model: "m", Messages: []llm.Message{{Role: "user", Content: []byte(`[{"type":"text","text":"go"}]`)}}}) {
			if err != nil {
				t.Fatal(err)
			}
			switch c := chunk.(type) {
			case llm.TextDelta:
				text.WriteString(c.Text)
			case llm.Done:
				name, _ := esjson.GetString(c.Blocks[1], "name")
				input, _ := esjson.Get(c.Blocks[1], "input")
				calls = append(calls, name+string(input))
			}
		}
		if text.String() != m.text {
			t.Errorf("the text came as %q", text.String())
		}
	}
	if err := m.close(); err != nil {
		t.Fatal(err)
	}
	want := []string{`read_file{"path":"f000.txt"}`, `read_file{"path":"f001.txt"}`, `attempt_completion{"result":"All files were read."}`}
	if diff := cmp.Diff(want, calls); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
	all := m.overhead()
	if len(all) != 2 || ran != 3 {
		t.Fatalf("%d overheads, the yardstick ran %d times", len(all), ran)
	}
	for _, d := range all {
		if d >= 20*time.Millisecond {
			t.Errorf("an overhead of %v holds the model's own time", d)
		}
	}
}

func TestHighWater(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux says it")
	}
	if n := peakMemory(os.Getpid()); n < 1<<20 {
		t.Errorf("this process held at most %d bytes", n)
	}
	if n := peakMemory(1 << 30); n != 0 {
		t.Errorf("a process that is not there held %d bytes", n)
	}
}

// TestSmoke runs everything once and asserts no time.
func TestSmoke(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the program")
	}
	var out bytes.Buffer
	err := run(context.Background(), options{dir: t.TempDir(), parts: "12345", quick: true, size: 1 << 20, out: io.Writer(&out)})
	if err != nil {
		t.Fatalf("got %v\n%s, want no error", err, out.String())
	}
	for _, want := range []string{"1 commit", "2 journal bytes", "streamed", "3 overhead", "first request", "journal", "Roo's folder"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the table says nothing of %q:\n%s", want, out.String())
		}
	}
}

// What caches share ends where two requests differ, cache marks aside.
func TestPrefixShare(t *testing.T) {
	mark := `,"cache_control":{"type":"ephemeral"}`
	for _, c := range []struct {
		before, next string
		want         float64
	}{
		{"", "x", 100},
		{"abcd", "abcdef", 100},
		{"abcd", "abXdef", 50},
		{"abcd", "ab", 50},
		{`{"a":1` + mark + `}`, `{"a":1}` + mark, 100},
		{`{"a":1}`, `{"a":1` + mark + `}`, 100},
	} {
		if got := prefixShare([]byte(c.before), []byte(c.next)); got != c.want {
			t.Errorf("got %q, %q: %v, want got = %v", c.before, c.next, got, c.want)
		}
	}
}
