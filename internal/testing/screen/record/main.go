// Command record plays a script with a program on a pseudo-terminal and draws what is seen as SVG: the whole session as
// one moving picture, and each shot as a still one.
//
//	go run ./internal/testing/screen/record -script docs/picker.rec -o docs/picker.svg -shots docs -- roost
//
// With -time it prints how long the program took until the last step of the script was seen:
//
//	printf 'wait Tokens\n' | go run ./internal/testing/screen/record -time -script /dev/stdin -- roost usage
//
// The environment of the program is that of this one. A shot is written as DIR/NAME.svg.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/roost-dev/roost/internal/testing/screen"
)

func main() {
	script := flag.String("script", "", "the `FILE` with the steps (see screen.Script)")
	out := flag.String("o", "", "write the session as a moving picture to this `FILE`")
	text := flag.Bool("text", false, "print each shot as text")
	shots := flag.String("shots", "", "write each shot into this `FOLDER`")
	size := flag.String("size", "100x30", "columns and lines of the terminal")
	theme := flag.String("theme", "auto", "dark, light, or auto: as the reader of the picture has chosen")
	light := flag.Bool("light", false, "the terminal tells the program that its ground is light")
	timed := flag.Bool("time", false, "print how long the session took")
	limit := flag.Duration("limit", 2*time.Minute, "give up after this time")
	flag.Parse()
	begun := time.Now()
	if err := record(*script, *out, *shots, *size, *theme, *light, *text, *limit, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "record:", err)
		os.Exit(1)
	}
	if *timed {
		fmt.Printf("%.1f s\n", time.Since(begun).Seconds())
	}
}

func record(script, out, shots, size, theme string, light, print bool, limit time.Duration, command []string) error {
	if len(command) == 0 || script == "" {
		return errors.New("-script FILE and, after --, a program are needed")
	}
	text, err := os.ReadFile(script)
	if err != nil {
		return err
	}
	steps, err := screen.ParseScript(string(text))
	if err != nil {
		return err
	}
	s, err := screen.ParseSize(size)
	if err != nil {
		return err
	}
	themes, known := map[string][]screen.Theme{"dark": {screen.Dark}, "light": {screen.Light}, "auto": nil}[theme]
	if !known {
		return fmt.Errorf("%q is no theme", theme)
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	shot := func(name string, p *screen.Picture) error {
		if print {
			fmt.Printf("== %s\n%s", name, p.Text())
		}
		if shots == "" {
			return nil
		}
		return draw(filepath.Join(shots, name+".svg"), []screen.Frame{{Picture: p}}, themes)
	}
	frames, err := screen.Play(ctx, exec.Command(command[0], command[1:]...), screen.Options{Size: s, Light: light}, steps, shot)
	if err != nil || out == "" {
		return err
	}
	return draw(out, frames, themes)
}

// draw writes a picture into a file.
func draw(path string, frames []screen.Frame, themes []screen.Theme) error {
	var b bytes.Buffer
	if err := screen.SVG(&b, frames, themes...); err != nil {
		return err
	}
	return os.WriteFile(path, b.Bytes(), 0o644) //nolint:gosec // a picture for everybody
}
