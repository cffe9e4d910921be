package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/roost-dev/roost/internal/testing/screen"
)

// screens measures what a person waits for at a terminal: the real program on a pseudo-terminal whose screen is read as
// soon as the program writes. The time of the emulator is in each number. Only Linux and macOS have such terminals here.
func screens(ctx context.Context, o options) ([]row, error) {
	tasks, rounds, presses := 10_000, 9, 100
	if o.quick {
		tasks, rounds, presses = 50, 2, 5
	}
	rows, err := pickerScreens(ctx, o, filepath.Join(o.dir, "picker"), tasks, rounds)
	if err == nil {
		var more []row
		more, err = chatScreens(ctx, o, filepath.Join(o.dir, "chat"), rounds, presses)
		rows = append(rows, more...)
	}
	if errors.Is(err, screen.ErrNone) {
		return []row{{what: "s screens", got: "no terminals here"}}, nil
	}
	return rows, err
}

// onScreen starts the program on a terminal of 120 by 35.
func onScreen(o options, home string, env []string, args ...string) (*screen.Terminal, time.Time, error) {
	cmd := exec.Command(o.roost, args...) //nolint:noctx // Close ends it
	cmd.Env = append(os.Environ(), "HOME="+home, "ROOST_ROOT="+filepath.Join(home, "roost"), "ROOST_CACHE="+filepath.Join(home, "cache"),
		"ROOST_SOURCES=none", "TERM=xterm-256color", "ANTHROPIC_API_KEY=bench")
	cmd.Env = append(append(cmd.Env, env...), o.env...)
	cmd.Dir = home
	begun := time.Now()
	t, err := screen.Start(cmd, screen.Options{Size: screen.Size{Columns: 120, Lines: 35}})
	return t, begun, err
}

// pickerScreens is how soon the picker shows something, and the newest of many tasks.
func pickerScreens(ctx context.Context, o options, home string, tasks, rounds int) ([]row, error) {
	storage := filepath.Join(home, "rooveterinaryinc.roo-cline")
	var dirs []string
	for i := range tasks {
		dirs = append(dirs, filepath.Join(storage, "tasks", fmt.Sprintf("%08x-0000-4000-8000-%012x", i*2654435761&0xffffffff, i)))
	}
	if _, err := storageOf(dirs, 12<<10); err != nil {
		return nil, err
	}
	for _, dir := range dirs {
		if err := aged(dir, time.Now().Add(-90*24*time.Hour)); err != nil {
			return nil, err
		}
	}
	newest := filepath.Base(dirs[tasks-1]) // in the preview
	var bare, frame, filled times
	for i := range rounds + 1 {
		c, err := start(ctx, o, home, time.Second, "version")
		if err != nil {
			return nil, err
		}
		t, begun, err := onScreen(o, home, nil, "--sources", storage)
		if err != nil {
			return nil, err
		}
		wait, cancel := context.WithTimeout(ctx, time.Minute)
		_, err = t.Wait(wait, func(p *screen.Picture) bool { return strings.TrimSpace(p.Text()) != "" })
		first := time.Since(begun)
		if err == nil {
			_, err = t.WaitFor(wait, newest)
		}
		all := time.Since(begun)
		cancel()
		t.Close()
		if err != nil {
			return nil, err
		}
		if i > 0 { // the first one reads every file
			bare, frame, filled = append(bare, c.took), append(frame, first), append(filled, all)
		}
	}
	return []row{
		{
			what: fmt.Sprintf("s picker of %d tasks, first picture", tasks), got: ms(frame.median()), floor: "version " + ms(bare.median()),
			ratio: over(frame.median(), bare.median()), bar: "<= 300 ms",
		},
		{
			what: "s the same, with the newest task", got: ms(filled.median()), floor: "version " + ms(bare.median()),
			ratio: over(filled.median(), bare.median()), bar: "<= 300 ms",
		},
	}, nil
}

// chatScreens is how soon a chat takes words, how soon it shows a key while a model streams 200 pieces a second, and
// how soon 5,000 pasted lines are in the input.
func chatScreens(ctx context.Context, o options, home string, rounds, presses int) (rows []row, err error) {
	if err := os.MkdirAll(filepath.Join(home, "ws"), 0o700); err != nil {
		return nil, fmt.Errorf("make a workspace: %w", err)
	}
	m, err := startModel(0)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, m.close()) }()
	m.text, m.piece, m.pause = prose(7, 64<<10), 4, 5*time.Millisecond
	chat := func() (*screen.Terminal, time.Time, error) {
		return onScreen(o, home, nil, "chat", "--approve", "all", "--provider", "anthropic", "--base-url", m.url,
			"--model", "claude-sonnet-4-5", "-C", filepath.Join(home, "ws"))
	}
	var ready, pasted times
	for range rounds {
		t, begun, err := chat()
		if err != nil {
			return rows, err
		}
		took, err := echo(ctx, t, "q", begun)
		if err == nil {
			ready = append(ready, took)
			begun = time.Now()
			lines := strings.TrimSuffix(strings.Repeat(strings.Repeat("words of a line ", 4)+"\n", 5000), "\n")
			if err = t.Type("\x1b[200~" + lines + "\x1b[201~"); err == nil {
				took, err = echo(ctx, t, "", begun, "5,000 lines pasted")
				pasted = append(pasted, took)
			}
		}
		t.Close()
		if err != nil {
			return rows, err
		}
	}
	rows = append(rows,
		row{what: "s chat shows the first key", got: ms(ready.median()), bar: "<= 100 ms"},
		row{what: "s 5,000 pasted lines are in the input", got: ms(pasted.median()), bar: "<= 200 ms"})
	keys, err := keysBeside(ctx, chat, presses)
	if m.mu.Lock(); err == nil && (len(m.arrived) != 1 || len(m.answered) != 0) {
		err = fmt.Errorf("%d replies began and %d ended while keys were pressed, want one that streams", len(m.arrived), len(m.answered))
	}
	m.mu.Unlock()
	return append(rows, row{
		what: "s a key beside 200 pieces a second, median, p99", got: ms(keys.median()) + ", " + ms(keys.p99()), bar: "<= 16 ms",
	}), err
}

// keysBeside are the times from a key to its sign on the screen while a reply streams.
func keysBeside(ctx context.Context, chat func() (*screen.Terminal, time.Time, error), presses int) (keys times, err error) {
	t, begun, err := chat()
	if err != nil {
		return nil, err
	}
	defer t.Close()
	if _, err := echo(ctx, t, "Tell me", begun); err != nil {
		return nil, err
	}
	before := len(t.Log())
	if err := t.Type("\r"); err != nil {
		return nil, err
	}
	wait, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	if _, err := t.Wait(wait, func(*screen.Picture) bool { return len(t.Log()) > before+4000 }); err != nil {
		return nil, fmt.Errorf("wait for a reply: %w", err)
	}
	typed := ""
	for i := range presses {
		key := string(rune('A' + i%26))
		begun := time.Now()
		if err := t.Type(key); err != nil {
			return keys, err
		}
		typed += key
		took, err := echo(ctx, t, "", begun, typed[max(0, len(typed)-20):])
		if err != nil {
			return keys, err
		}
		keys = append(keys, took)
		time.Sleep(time.Duration(20+rand.IntN(30)) * time.Millisecond) //nolint:gosec // a moment of the stream
	}
	return keys, nil
}

// echo types text, waits until the screen shows it, or what is named, and returns how long after begun that was.
func echo(ctx context.Context, t *screen.Terminal, text string, begun time.Time, shown ...string) (time.Duration, error) {
	wait, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	if text != "" {
		if err := t.Type(text); err != nil {
			return 0, err
		}
		shown = append(shown, "› "+text)
	}
	_, err := t.WaitFor(wait, shown...)
	return time.Since(begun), err
}
