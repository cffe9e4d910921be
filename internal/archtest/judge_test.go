package archtest

import (
	"strings"
	"testing"
)

// TestJudge is the rule by example: who may import whom.
func TestJudge(t *testing.T) {
	for _, c := range []struct {
		from, to string
		test     bool
		want     string // part of the reason, "" when it may
	}{
		{"cli", "engine", false, ""},
		{"cmd/roost", "cli", false, ""},
		{"store", "task", false, ""},
		{"task", "store", false, "store is above task"},
		{"task", "store", true, "store is above task"},
		{"cli", "cmd/roost", false, "cmd/roost is above cli"},
		{"task", "journal", false, ""},
		{"journal", "task", false, "neighbours"},
		{"journal", "task", true, ""},
		{"journal/filelog", "journal", false, ""},
		{"journal", "journal/filelog", false, ""},
		{"llm/anthropic", "llm/wire", false, ""},
		{"workspace", "workspace/terminal", false, ""},
		{"workspace/terminal", "workspace", false, ""}, // a parent; the file itself says what it needs
		{"redact", "workspace/terminal", false, ""},
		{"redact", "workspace", false, "workspace is above redact"},
		{"esjson", "internal/testing/conformance", true, ""},
		{"esjson", "internal/testing/conformance", false, "neighbours"},
		{"store", "internal/testing/storetest", true, ""},
		{"store", "internal/testing/storetest", false, "storetest is above store"},
		{"internal/testing/conformance", "esjson", false, ""},
		{"agent", "store", false, "interface of its own"},
		{"agent", "store", true, ""},
		{"agent", "journal/filelog", false, "interface of its own"},
		{"agent", "journal", false, ""},
		{"llm/script", "task", false, "not tasks or disks"},
		{"tool/filetool", "usage", false, "no history"},
		{"tool/filetool", "workspace", false, ""},
		{"workspace/shell", "task", false, "how tasks are kept"},
		{"checkpoint", "checkpoint/gitstore", false, ""},
		{"checkpoint", "store", false, "not where tasks are kept"},
		{"checkpoint/gitstore", "workspace", false, "their files only"},
		{"checkpoint/gitstore", "internal/failpoint", false, ""},
		{"agent", "checkpoint", false, "interface of its own"},
		{"engine", "a/stranger", false, ""}, // reported once, as a package without a place
		{"a/stranger", "engine", false, ""},
		{"taskforce", "task", false, ""}, // only a path's own parts count
	} {
		got := judge(c.from, c.to, c.test)
		if c.want == "" && got != "" || !strings.Contains(got, c.want) {
			t.Errorf("%s imports %s (test %v): %q, want %q", c.from, c.to, c.test, got, c.want)
		}
	}
}
