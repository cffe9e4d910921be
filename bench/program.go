package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// programs measures how long the program takes, in a home that is empty each time, turn about with a
// program that prints two words; and how large it is.
func programs(ctx context.Context, o options) ([]row, error) {
	rounds := 100
	if o.quick {
		rounds = 3
	}
	source := filepath.Join(o.dir, "hello.go")
	if err := os.WriteFile(source, []byte("package main\n\nimport \"fmt\"\n\nfunc main() { fmt.Println(\"hello world\") }\n"), 0o600); err != nil {
		return nil, fmt.Errorf("write a small program: %w", err)
	}
	hello, err := build(ctx, filepath.Join(o.dir, "hello"), source)
	if err != nil {
		return nil, err
	}
	o.env = []string{"ROOST_SOURCES=auto"} // it looks for the storages of other tools, too
	other := o
	other.roost = hello
	var bare, version, list times
	for i := range rounds {
		for _, m := range []struct {
			to   *times
			with options
			args []string
		}{{&bare, other, []string{""}}, {&version, o, []string{"version"}}, {&list, o, []string{"list"}}} {
			home := filepath.Join(o.dir, "empty")
			if err := os.Mkdir(home, 0o700); err != nil {
				return nil, fmt.Errorf("make an empty home: %w", err)
			}
			c, err := start(ctx, m.with, home, time.Hour, m.args...)
			if err != nil {
				return nil, err
			}
			if err := os.RemoveAll(home); err != nil {
				return nil, fmt.Errorf("empty the home: %w", err)
			}
			if i > 0 || o.quick { // the first one comes from the disk
				*m.to = append(*m.to, c.took)
			}
		}
	}
	size, err := fileSize(o.roost)
	if err != nil {
		return nil, err
	}
	small, err := fileSize(hello)
	if err != nil {
		return nil, err
	}
	result := func(what string, got times) row {
		return row{what: "e " + what, got: ms(got.median()) + ", p99 " + ms(got.p99()), floor: "hello world " + ms(bare.median()),
			ratio: "+" + ms(got.median()-bare.median()), bar: "-"}
	}
	return []row{
		result("roost version, in an empty home", version),
		result("roost list, in an empty home", list),
		{what: "e size of the program", got: mb(size), floor: "hello world " + mb(small), ratio: over(size, small), bar: "-"},
	}, nil
}
