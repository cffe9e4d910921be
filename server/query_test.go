package server

import (
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/roost-dev/roost/engine"
	"github.com/roost-dev/roost/roofmt"
)

var everyKind = []param{
	{name: "n", kind: "number", least: 1, most: 10, deflt: 5}, {name: "open", kind: "number", least: 2}, {name: "b", kind: "flag"}, {name: "at", kind: "time"},
	{name: "usd", kind: "dollars"}, {name: "one", kind: "word", words: []string{"a", "b"}}, {name: "some", kind: "words", words: []string{"a", "b"}}, {name: "t", kind: "text"},
}

func TestDecodingOfEachKind(t *testing.T) {
	now := time.Date(2026, 4, 17, 12, 0, 0, 0, time.UTC)
	v, err := decode("n=10&open=999&b=true&at=2h&usd=1.50&one=b&some=b,a&t=x+y%26", everyKind, now)
	if err != nil {
		t.Fatal(err)
	}
	if v.number["n"] != 10 || v.number["open"] != 999 || !v.flag["b"] || v.time["at"] != now.Add(-2*time.Hour).UnixMilli() || *v.usd["usd"] != 1_500_000 || v.text["one"] != "b" || v.text["some"] != "b,a" || v.text["t"] != "x y&" {
		t.Errorf("%+v", v)
	}
	v, err = decode("", everyKind, now)
	if err != nil || v.number["n"] != 5 || len(v.text) != 0 {
		t.Errorf("%v %+v", err, v)
	}
	for query, want := range map[string]string{
		"n=0": "want a whole number from 1 to 10", "n=1.5": "want a whole number from 1 to 10", "n=": "want a whole number from 1 to 10", "open=1": "want a whole number from 2 on", "b=maybe": "want true or false",
		"at=soon": "want a time such as 2026-01-31 or RFC 3339, or an age such as 7d", "usd=-1": "want an amount of US dollars such as 0.50", "one=c": "want one of a, b", "some=a,,b": "want some of a, b, joined by commas",
		"t=1&t=2": "it is given twice", "t=" + strings.Repeat("x", longest+1): "it is too long",
		"x=1": "there is no such parameter; there are: n, open, b, at, usd, one, some, t",
	} {
		_, err := decode(query, everyKind, now)
		p, ok := err.(*Problem) //nolint:errorlint // it is made here
		if !ok || len(p.Errors) != 1 || p.Errors[0].Detail != want {
			t.Errorf("%.40s: %v", query, err)
		}
	}
	if _, err := decode("x=1", nil, now); err == nil || !strings.Contains(err.Error(), "takes none") {
		t.Error(err)
	}
}

// A place is written in one way only, and read back as it was.
func TestPlacesInAStream(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := engine.Mark{Epoch: rapid.Uint64Range(0, 1<<62).Draw(t, "epoch"), Seq: rapid.Uint64Range(1, 1<<62).Draw(t, "seq"), Index: rapid.IntRange(0, 1<<30).Draw(t, "index")}
		w, ok := readWhere(m.String())
		if !ok || w.mark != m || w.whole || w.live {
			t.Fatalf("%s: %v %+v", m, ok, w)
		}
	})
	for _, bad := range []string{"1.2", "1.0-0", "1.2-", ".2-0", "1.2-0 ", "+1.2-0", "1.02-0", "1.2--1", "1.2-0-0", "-1", "1e3", "0x1", "１", "1.2-9999999999", "99999999999999999999"} {
		if w, ok := readWhere(bad); ok {
			t.Errorf("%q: %+v", bad, w)
		}
	}
	if w, ok := readWhere(""); !ok || !w.live {
		t.Error("none is live")
	}
	if w, ok := readWhere("0"); !ok || !w.whole || w.mark.Seq != 0 {
		t.Error("0 is the start")
	}
}

// Whatever a follower was given before, it takes each event once and in order.
func TestAPositionTakesEachEventOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var commits [][]engine.Event
		var all []engine.Mark
		for seq := uint64(1); seq <= 12; seq++ {
			var events []engine.Event
			for i := range rapid.IntRange(0, 3).Draw(t, "events") { // none: the commit is damaged
				m := engine.Mark{Epoch: 1, Seq: seq, Index: i}
				events = append(events, engine.Event{ID: m.String(), Seq: seq})
				all = append(all, m)
			}
			commits = append(commits, events)
		}
		if len(all) == 0 {
			return
		}
		n := rapid.IntRange(0, len(all)-1).Draw(t, "seen")
		p := where{mark: all[n]}.position()
		var got []string
		from := 0
		for range 3 { // the log read anew, from some place before it, as often as may be
			from = rapid.IntRange(0, min(int(p.seq), len(commits))).Draw(t, "from")
			to := rapid.IntRange(from, len(commits)).Draw(t, "to")
			for _, events := range commits[from:to] {
				for _, e := range p.take(events) {
					got = append(got, e.ID)
				}
			}
		}
		for _, events := range commits[min(int(p.seq), len(commits)):] {
			for _, e := range p.take(events) {
				got = append(got, e.ID)
			}
		}
		var want []string
		for _, m := range all[n+1:] {
			want = append(want, m.String())
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatal(diff)
		}
	})
}

func FuzzQuery(f *testing.F) {
	for _, seed := range []string{"n=3&t=a", "x=%zz", "n=1;b=2", "at=2026-01-31", "some=a,b&usd=1.5", "t=%00&t=2"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, query string) {
		v, err := decode(query, everyKind, time.Unix(1e9, 0))
		if err != nil {
			if p, ok := err.(*Problem); !ok || p.Status/100 != 4 { //nolint:errorlint // it is made here
				t.Fatalf("%v", err)
			}
			return
		}
		given, err := url.ParseQuery(query)
		if err != nil {
			t.Fatal("what is no query was read")
		}
		for name, texts := range given {
			if len(texts) != 1 || len(texts[0]) > longest || !strings.Contains(known(everyKind), " "+name) {
				t.Fatalf("%q was taken", name)
			}
		}
		if n := v.number["n"]; n < 1 || n > 10 {
			t.Fatal(n)
		}
	})
}

func FuzzCursor(f *testing.F) {
	for _, seed := range []string{"", "0", "17", "1.2-3", "01.2-3", "1.2-3-4", "99999999999999999999.1-1"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		w, ok := readWhere(text)
		switch {
		case !ok:
		case w.live && text != "", w.whole && w.mark.Index != 0:
			t.Fatalf("%q: %+v", text, w)
		case !w.live && !w.whole && w.mark.String() != text:
			t.Fatalf("%q is read as %s", text, w.mark)
		}
		if p := w.position(); ok && p.skip < 0 {
			t.Fatalf("%q: %+v", text, p)
		}
	})
}

func FuzzID(f *testing.F) {
	for _, seed := range []string{"a", "..", "a/b", "roost:a", ":a", "a:", "a:b:c", "a\x00", strings.Repeat("a", 200), "-a", "a.b_c-d"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if !validRef(text) {
			return
		}
		for _, part := range strings.Split(text, ":") {
			if !roofmt.ValidID(part) {
				t.Fatalf("%q has a part that is no id", text)
			}
		}
		if strings.ContainsAny(text, "/\\ \x00\r\n") || strings.Contains(text, "..") && text[0] == '.' {
			t.Fatalf("%q", text)
		}
	})
}

func TestAccepts(t *testing.T) {
	for header, want := range map[string]bool{
		"": true, "*/*": true, "application/json": true, "application/*": true, "text/html": false, "text/html, */*": true, "application/json;q=0": false,
		"*/*, application/json;q=0": false, "application/json;q=0.1, */*;q=0": true, "Application/JSON; charset=utf-8": true, "text/*": false, ";;;": false, "application/*;q=0, */*": false,
	} {
		if got := accepts([]string{header}, jsonMedia); got != want {
			t.Errorf("%q: %v", header, got)
		}
	}
}
