package redact

import (
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// TestRulesAtTheirLimits takes every rule to the lengths where it begins and ends to
// hold. What is one byte short is no key, what a fixed length goes beyond is none.
func TestRulesAtTheirLimits(t *testing.T) {
	r := New()
	for _, rule := range rules {
		if rule.body == nil {
			continue
		}
		// Other kinds may take what this one leaves: look for this one's name only.
		masked := func(s string) bool {
			got, _ := r.String(s)
			return strings.Contains(got, "[REDACTED:"+rule.kind+"]")
		}
		lead := "" // what must stand in front
		if rule.behind != nil {
			lead = fake(rule.behind, 1)
		}
		rule.keyword = lead + rule.keyword
		whole := rule.keyword + fake(rule.body, rule.min)
		if !masked("x = "+whole+" ") || !masked(whole) {
			t.Errorf("%s %q: the shortest is not masked", rule.kind, rule.keyword)
		}
		if masked("x = " + whole[:len(whole)-1] + " ") {
			t.Errorf("%s %q: one byte less is masked", rule.kind, rule.keyword)
		}
		if rule.max > 0 && masked("x = "+rule.keyword+fake(rule.body, rule.max+1)+" ") {
			t.Errorf("%s %q: one byte more than %d is masked", rule.kind, rule.keyword, rule.max)
		}
		if rule.max > 0 && !masked("x = "+rule.keyword+fake(rule.body, rule.max)+" ") {
			t.Errorf("%s %q: the longest is not masked", rule.kind, rule.keyword)
		}
		if !rule.free && rule.behind == nil && (masked("x"+whole) || masked("_"+whole)) {
			t.Errorf("%s %q: masked in the middle of a word", rule.kind, rule.keyword)
		}
		for _, dull := range []string{strings.Repeat("a", rule.min), strings.Repeat("0", rule.min), strings.Repeat("ab", rule.min)[:rule.min]} {
			if masked(rule.keyword + dull + " ") {
				t.Errorf("%s %q: a placeholder is masked", rule.kind, rule.keyword)
			}
		}
	}
}

// TestSpecialRules are those that look at more than a prefix.
func TestSpecialRules(t *testing.T) {
	secret, long := fake(alnum, 20), fake(base64s, 40)
	head := "eyJ" + fake(word, 20)
	key := strings.Repeat(fake(alnum, 64)+"\n", 3)
	begin, end := "-----BEGIN RSA PRIVATE"+" KEY-----", "-----END RSA PRIVATE"+" KEY-----"
	for in, want := range map[string]string{
		// A password in an address: it goes, the rest stays.
		"postgres://app:" + secret + "@db:5432/x":       "postgres://app:[REDACTED:url-password]@db:5432/x",
		"https://" + secret + "@github.com/a":           "https://" + secret + "@github.com/a", // no password: a name, by the looks of it
		"redis://:" + secret + "@cache/0":               "redis://:[REDACTED:url-password]@cache/0",
		"amqp://u:" + secret + "%40x@h":                 "amqp://u:[REDACTED:url-password]@h",
		"https://u:short@h":                             "https://u:short@h",
		"https://u:changeme@h https://u:CHANGEME@h":     "https://u:changeme@h https://u:CHANGEME@h",
		"https://u:" + secret + " @h":                   "https://u:" + secret + " @h",
		"https://u:" + secret + "/@h":                   "https://u:[REDACTED:url-password]@h",
		"https://u:" + secret + "/h":                    "https://u:" + secret + "/h",
		"a://u:" + secret + "@h b://u:" + secret + "@h": "a://u:[REDACTED:url-password]@h b://u:[REDACTED:url-password]@h",
		"https://u:xxxxxxxx@h https://u:********@h":     "https://u:xxxxxxxx@h https://u:********@h",
		// A name, an assignment, a value.
		"aws_secret_access_key=" + long:           "aws_secret_access_key=[REDACTED:aws-secret]",
		`"SecretAccessKey": "` + long + `",`:      `"SecretAccessKey": "[REDACTED:aws-secret]",`,
		"AWS_SECRET_ACCESS_KEY='" + long + "'":    "AWS_SECRET_ACCESS_KEY='[REDACTED:aws-secret]'",
		"aws_secret_access_key " + long + "a":     "aws_secret_access_key " + long + "a",
		"aws_secret_access_key" + long:            "aws_secret_access_key" + long,
		"aws_secret_access_key = YOUR_SECRET_KEY": "aws_secret_access_key = YOUR_SECRET_KEY",
		// Three parts, of which two begin as JSON does.
		head + ".eyJ" + fake(word, 30) + "." + fake(word, 43): "[REDACTED:jwt]",
		head + ".abc" + fake(word, 30) + "." + fake(word, 43): head + ".abc" + fake(word, 30) + "." + fake(word, 43),
		head + ".eyJ" + fake(word, 30):                        head + ".eyJ" + fake(word, 30),
		head + ".eyJ" + fake(word, 30) + ".short":             head + ".eyJ" + fake(word, 30) + ".short",
		head + " " + "eyJ" + fake(word, 30):                   head + " " + "eyJ" + fake(word, 30),
		// After the word, something that no person writes.
		"Authorization: Bearer " + fake(bearers, 20) + "\r\n": "Authorization: Bearer [REDACTED:bearer-token]\r\n",
		"Authorization: Bearer " + fake(bearers, 19) + "\r\n": "Authorization: Bearer " + fake(bearers, 19) + "\r\n",
		"bearer tokens are explained in this document":        "bearer tokens are explained in this document",
		// Key blocks, in files, in JSON, cut off.
		"a\n" + begin + "\n" + key + end + "\nb":                                     "a\n[REDACTED:private-key]\nb",
		`{"k":"` + begin + `\n` + strings.ReplaceAll(key, "\n", `\n`) + end + `\n"}`: `{"k":"[REDACTED:private-key]\n"}`,
		"  " + begin + "\n  " + strings.ReplaceAll(key, "\n", "\n  ") + end:          "  [REDACTED:private-key]",
		begin + "\n" + key + "<truncated>":                                           "[REDACTED:private-key]<truncated>",
		begin + "\nshort\n" + end:                                                    begin + "\nshort\n" + end,
		begin + "\n" + fake(alnum, 20) + "\n" + fake(alnum, 20) + "\n" + end:         "[REDACTED:private-key]",
		begin + `\n" + privateKeyBase64Encoded + "\n` + end:                          begin + `\n" + privateKeyBase64Encoded + "\n` + end,
		begin + "\n" + fake(alnum, 31) + "\n" + end:                                  begin + "\n" + fake(alnum, 31) + "\n" + end,
		begin + " is what it starts with":                                            begin + " is what it starts with",
		strings.ReplaceAll(begin, "RSA PRIVATE", "PUBLIC") + "\n" + key:              strings.ReplaceAll(begin, "RSA PRIVATE", "PUBLIC") + "\n" + key,
		begin + "\n" + key + end + "\n" + begin + "\n" + key + end:                   "[REDACTED:private-key]\n[REDACTED:private-key]",
	} {
		got, n := New().String(in)
		if got != want || n != strings.Count(want, "[REDACTED:") {
			t.Errorf("%q\n got %q (%d)\nwant %q", in, got, n, want)
		}
	}
}

// Known values are masked exactly as they are, wherever they stand; of two that
// overlap the longer one, so that no half of it is left.
func TestKnownValues(t *testing.T) {
	given := []Known{{"short", "hunter22"}, {"long", "hunter22-and-more"}, {"tail", "more-than-that"}, {"lines", "two\nlines here"}, {"signs", `a.*[b]$(c)\d`}, {"utf", "пароль-日本"}, {"tiny", "seven77"}}
	before := append([]Known(nil), given...)
	r := New(given...)
	if diff := cmp.Diff(before, given); diff != "" {
		t.Errorf("New changed its arguments: %s", diff)
	}
	for in, want := range map[string]string{
		"hunter22":                              "[REDACTED:short]",
		"xhunter22x":                            "x[REDACTED:short]x",
		"hunter22-and-more":                     "[REDACTED:long]",
		"hunter22-and-more-than-that":           "[REDACTED:long]-than-that", // the first one counts
		"hunter22-and-mor":                      "[REDACTED:short]-and-mor",
		"hunter22hunter22":                      "[REDACTED:short][REDACTED:short]",
		"HUNTER22 hunter2":                      "HUNTER22 hunter2",
		"two\nlines here, two lines here":       "[REDACTED:lines], two lines here",
		`a.*[b]$(c)\d axxb$(c)1`:                "[REDACTED:signs] axxb$(c)1",
		"пароль-日本語":                            "[REDACTED:utf]語",
		"seven77":                               "seven77",
		"sk-ant-" + "hunter22" + "0123456789ab": "[REDACTED:anthropic-key]",
	} {
		if got, _ := r.String(in); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}

// Each secret, cut in two at every place, is masked as if it had come whole: nothing
// of it has been let through before the rest was there.
func TestCutAtEveryByte(t *testing.T) {
	r := redactor()
	for name, s := range secrets() {
		if len(s) > 600 {
			s = s[:600] // of a key block, the beginning and some of its body
		}
		text := "before " + s + " after"
		want, _ := r.String(text)
		for cut := range text {
			var out strings.Builder
			w := r.Writer(&out)
			for _, piece := range []string{text[:cut], text[cut:]} {
				if _, err := w.Write([]byte(piece)); err != nil {
					t.Fatal(err)
				}
				if !strings.HasPrefix(want, out.String()) {
					t.Fatalf("%s, cut at %d: %q has been written", name, cut, out.String())
				}
			}
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			if out.String() != want {
				t.Fatalf("%s, cut at %d: %q, want %q", name, cut, out.String(), want)
			}
		}
	}
}

// failing takes some writes and fails then.
type failing struct{ left int }

var errFull = errors.New("disk full")

func (f *failing) Write(p []byte) (int, error) {
	if f.left--; f.left < 0 {
		return 0, errFull
	}
	return len(p), nil
}

func TestWriterPassesErrorsOn(t *testing.T) {
	line := []byte(strings.Repeat("ordinary text ", 100))
	w := New().Writer(&failing{1})
	if n, err := w.Write(line); n != len(line) || err != nil {
		t.Errorf("got %d, %v, want n = len(line) and no error", n, err)
	}
	if n, err := w.Write(line); n != 0 || !errors.Is(err, errFull) {
		t.Errorf("got %d, %v, want n = 0 and errors.Is(err, errFull)", n, err)
	}
	if err := New().Writer(&failing{}).Close(); err != nil {
		t.Errorf("closing without text wrote: %v", err)
	}
}

// A Writer that was closed begins anew: what stood before has no part in what follows.
func TestWriterIsUsedAgain(t *testing.T) {
	r := New(Known{"mine", "the secret value"})
	var out strings.Builder
	w := r.Writer(&out)
	for _, piece := range []string{"the secret ", "value"} {
		if _, err := w.Write([]byte(piece)); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if out.String() != "the secret value" || w.Count() != 0 {
		t.Errorf("two texts became one: %q", out.String())
	}
	for range 3 {
		if _, err := w.Write([]byte("a the secret value b")); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil || w.Count() != 3 {
		t.Errorf("%d secrets counted, %v", w.Count(), err)
	}
}

func TestARedactorIsShared(t *testing.T) {
	r := redactor()
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for name, s := range secrets() {
				if got, n := r.String("x " + s + " y"); n != 1 {
					t.Errorf("%s: got %q, want n = 1", name, got)
				}
			}
		})
	}
	all.Wait()
}

// Whatever stands around known values, none of them is left, text without them is
// untouched, and masks are counted.
func TestNothingKnownIsLeft(t *testing.T) {
	values := []Known{{"a", "first-value"}, {"b", "second value"}, {"c", "first-value-and-on"}, {"d", "zzzzzzzz"}}
	r := New(values...)
	piece := rapid.SampledFrom([]string{"first-value", "second value", "first-value-and-on", "zzzzzzzz", "first-", "value", "z", "zzzz", "-and-on", " ", "\n", "sk-", "://", "eyJ", "text "})
	rapid.Check(t, func(t *rapid.T) {
		in := strings.Join(rapid.SliceOfN(piece, 0, 12).Draw(t, "pieces"), "")
		got, n := r.String(in)
		for _, k := range values {
			if strings.Contains(got, k.Value) {
				t.Fatalf("%q became %q", in, got)
			}
		}
		if n != strings.Count(got, "[REDACTED:") || n == 0 && got != in {
			t.Fatalf("%q became %q with %d masks", in, got, n)
		}
		if again, more := r.String(got); more != 0 || again != got {
			t.Fatalf("%q, masked again, is %q", got, again)
		}
	})
}
