package server

import (
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/service"
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
		t.Errorf("got %v %+v, want no error and v.number[\"n\"] = 5 and len(v.text) = 0", err, v)
	}
	for query, want := range map[string]string{
		"n=0": "want a whole number from 1 to 10", "n=1.5": "want a whole number from 1 to 10", "n=": "want a whole number from 1 to 10", "open=1": "want a whole number from 2 on", "b=maybe": "want true or false",
		"at=soon": "want a time such as 2026-01-31 or RFC 3339, or an age such as 7d", "usd=-1": "want an amount of US dollars such as 0.50", "one=c": "want one of a, b", "some=a,,b": "want some of a, b, joined by commas",
		"t=1&t=2": "the parameter is given twice", "t=" + strings.Repeat("x", longest+1): "the value is longer than 4096 bytes",
		"x=1": "there is no such parameter; there are: n, open, b, at, usd, one, some, t",
	} {
		_, err := decode(query, everyKind, now)
		p, ok := err.(*api.Problem) //nolint:errorlint // it is made here
		if !ok || len(p.Errors) != 1 || p.Errors[0].Detail != want {
			t.Errorf("%.40s: %v", query, err)
		}
	}
	if _, err := decode("x=1", nil, now); err == nil || !strings.Contains(err.Error(), "takes none") {
		t.Error(err)
	}
}

func FuzzQuery(f *testing.F) {
	for _, seed := range []string{"n=3&t=a", "x=%zz", "n=1;b=2", "at=2026-01-31", "some=a,b&usd=1.5", "t=%00&t=2"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, query string) {
		v, err := decode(query, everyKind, time.Unix(1e9, 0))
		if err != nil {
			if p, ok := err.(*api.Problem); !ok || p.Status/100 != 4 { //nolint:errorlint // it is made here
				t.Fatalf("got %v, want ok and p.Status/100 = 4", err)
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

func FuzzID(f *testing.F) {
	for _, seed := range []string{"a", "..", "a/b", "roost:a", ":a", "a:", "a:b:c", "a\x00", strings.Repeat("a", 200), "-a", "a.b_c-d"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if !service.ValidName(text) {
			return
		}
		for _, part := range strings.Split(text, ":") {
			if !api.ValidTaskID(part) {
				t.Fatalf("%q has a part that is no id", text)
			}
		}
		if strings.ContainsAny(text, "/\\ \x00\r\n") || strings.Contains(text, "..") && text[0] == '.' {
			t.Fatalf(`got %q, want not strings.ContainsAny(text, "/\\ \x00\r\n") and (not strings.Contains(text, "..") or text[0] != '.')`,
				text)
		}
	})
}

func TestAccepts(t *testing.T) {
	for header, want := range map[string]bool{
		"": true, "*/*": true, "application/json": true, "application/*": true, "text/html": false, "text/html, */*": true, "application/json;q=0": false,
		"*/*, application/json;q=0": false, "application/json;q=0.1, */*;q=0": true, "Application/JSON; charset=utf-8": true, "text/*": false, ";;;": false, "application/*;q=0, */*": false,
	} {
		if got := accepts([]string{header}, jsonMedia); got != want {
			t.Errorf("%q: got %v, want got = %v", header, got, want)
		}
	}
}
