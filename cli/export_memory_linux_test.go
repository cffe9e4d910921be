package cli

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A task of hundred megabytes costs an export what some of its messages cost, in every
// form, and showing it no more.
func TestLargeTasksCostLittleMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("it writes half a gigabyte")
	}
	t.Parallel()
	s := newSandbox(t)
	const rows, megabyte, limit = 70, 1 << 20, 120 << 20
	s.foreign("fat", "words", 1_776_200_000_000)
	for name, shape := range map[string]string{
		"ui_messages.json":              `{"ts":%d,"type":"say","say":"text","text":"%s"}`,
		"api_conversation_history.json": `{"role":"assistant","content":"%[2]s","ts":%[1]d}`,
	} {
		f, err := os.Create(filepath.Join(s.store, "tasks", "fat", name))
		must(t, err)
		out := bufio.NewWriter(f)
		text := strings.Repeat("so many words ", megabyte/14)
		sep := "["
		for i := range rows {
			fmt.Fprintf(out, sep+shape, i+1, text)
			sep = ","
		}
		out.WriteString("]") //nolint:errcheck // Flush tells
		must(t, out.Flush())
		must(t, f.Close())
		must(t, os.Chtimes(f.Name(), yesterday, yesterday))
	}
	for _, args := range [][]string{
		{"export", "fat", "--format", "md"}, {"export", "fat", "--format", "json"}, {"export", "fat", "--format", "html"}, {"export", "fat", "--format", "roo"},
		{"export", "fat", "--format", "archive"}, {"show", "fat"}, {"show", "fat", "--api", "--tail", "3"}, {"show", "fat", "--ui", "--json"}, {"usage"},
	} {
		out := filepath.Join(s.dir, "out")
		if args[0] == "export" {
			args = append(args, "-o", out)
		}
		least := int64(0) // where the collector gets no processor, garbage stays longer: the best of three is what is needed
		for try := 0; try < 3 && (least == 0 || least > limit); try++ {
			cmd := s.command(args...)
			memory := filepath.Join(t.TempDir(), "status")
			cmd.Env = append(cmd.Env, peakVar+"="+memory, "GOGC=")
			if printed, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%v: %v\n%.500s", args, err, printed)
			}
			must(t, os.RemoveAll(out))
			if most := peak(t, memory); least == 0 || most < least {
				least = most
			}
		}
		if least > limit || least == 0 {
			t.Errorf("%v took %d MB of memory", args, least>>20)
		}
	}
}
