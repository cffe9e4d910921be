package tool

import (
	"strings"
	"testing"
)

func TestVisible(t *testing.T) {
	for in, want := range map[string]string{
		"git log --oneline -3": "git log --oneline -3",
		"a\n  b\n\nc":          "a\n  b\n\nc",
		"git log" + strings.Repeat(" ", 300) + "; rm -rf x": "git log«300 blanks»; rm -rf x",
		"git log" + strings.Repeat("\n", 300) + "rm -rf x":  "git log\n«299 empty lines»\nrm -rf x",
		"git log\u00a0\u00a0x":                              "git log«U+00A0 U+00A0»x",
		"g\u0456t log":                                      "g«\u0456 U+0456»t log",
		"echo \u65e5\u672c ok":                              "echo «\u65e5\u672c U+65E5 U+672C» ok",
		"echo \u202egnp.exe":                                "echo «U+202E»gnp.exe",
		"ls \x1b[2K\rrm x":                                  "ls «U+001B»[2K«U+000D»rm x",
		"echo a\u200b\u3164\u0300b":                         "echo a«\u3164 U+200B U+3164 U+0300»b",
		"echo \u05d0":                                       "echo «U+05D0»",
		"\techo\t\ta":                                       "«tab»echo«2 tabs»a",
		"a\x00\x7f\u0085\u2028b":                            "a«U+0000 U+007F U+0085 U+2028»b",
		"a\xff\u00e9\xc3":                                   "a«byte 0xFF»«é U+00E9»«byte 0xC3»",
		"\xef\u00e9\xef":                                    "«byte 0xEF»«é U+00E9»«byte 0xEF»",
		"a\ufffd\xff":                                       "a«\ufffd U+FFFD»«byte 0xFF»",
		"echo «3 blanks»":                                   "echo «« U+00AB»3 blanks«» U+00BB»",
		"a" + strings.Repeat(" ", 9) + "b":                  "a" + strings.Repeat(" ", 9) + "b",
		"":                                                  "",
		"ls\r\n":                                            "ls«U+000D»\n",
	} {
		if got := Visible(in); got != want {
			t.Errorf("%q:\n got %q\nwant %q", in, got, want)
		}
	}
}
