package api

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/roost-dev/roost/money"
)

// grown is a family with these depths; each task costs a cent but the one named "?".
func grown(tasks string) Family {
	var f Family
	for line := range strings.Lines(tasks) {
		name := strings.TrimSpace(line)
		f.Depths = append(f.Depths, len(line)-len(strings.TrimLeft(line, " ")))
		t := Summary{ID: name, Path: name}
		if cent := money.USD(10_000); name != "?" {
			t.Usage.Cost = &cent
		}
		f.Tasks = append(f.Tasks, t)
	}
	return f
}

// What a tree cost is what is known of it; a task without subtasks has no sum.
func TestSumsOfATree(t *testing.T) {
	f := grown("a\n b\n  c\n  ?\n d\ne\n?\n ?\n")
	var got []string
	for _, s := range CostsBelow(f.Tasks, f.Depths) {
		if s == nil {
			got = append(got, "-")
		} else {
			got = append(got, s.String())
		}
	}
	if text := strings.Join(got, " "); text != "0.04 0.02 - - - - - -" {
		t.Error(text)
	}
	data, err := json.Marshal(grown("a\n b\n  c\n d\n").Branch())
	if err != nil {
		t.Fatal(err)
	}
	type node struct {
		Task     struct{ ID string }
		Cost     *string
		Children []node
	}
	var n node
	if err := json.Unmarshal(data, &n); err != nil || len(n.Children) != 2 || *n.Cost != "0.04" || n.Children[0].Children[0].Task.ID != "c" || n.Children[1].Task.ID != "d" || *n.Children[1].Cost != "0.01" {
		t.Errorf("%v: %s", err, data)
	}
	if !strings.Contains(string(data), `"children":[]`) {
		t.Errorf("a list that is empty is no null: %s", data)
	}
}
