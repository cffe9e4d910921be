package view

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/internal/testing/conformance"
)

// realKind: some authors scrambled even the kinds; those that are left have words.
var realKind = regexp.MustCompile(`^(ask|say):[a-z]+(_[a-z]+)+$`)

// Every message that people have on their disks can be shown, in lines that stay
// lines.
func TestCorpusMessages(t *testing.T) {
	files := []string{"ui_messages.json", "api_conversation_history.json"}
	list := conformance.CorpusFolders(t, func(dir string) bool {
		for _, name := range files {
			if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
				return true
			}
		}
		return false
	})
	unknown := map[string]int{}
	messages := 0
	conformance.CorpusTally(t, list, func(t *testing.T, dir string) {
		for _, name := range files {
			data, err := os.ReadFile(filepath.Join(dir, name))
			if err != nil {
				continue // not all have both
			}
			_, err = esjson.Split(bytes.NewReader(data), func(e esjson.Element) error {
				raw := data[e.Off : e.Off+e.Len]
				messages++
				checkShown(t, raw)
				it := UI(raw, 2)
				if name != files[0] {
					it = API(raw, 2)
				}
				if it.Kind == "invalid" {
					t.Errorf("%s: a message at %d is no message", name, e.Off)
				}
				if it.Class == Unknown && realKind.MatchString(it.Kind) {
					unknown[it.Kind]++
				}
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		}
	})
	if len(unknown) > 0 || messages == 0 {
		t.Errorf("of %d messages, these are of a kind that is not known: %v", messages, unknown)
	}
}
