package tool

import (
	"errors"
	"fmt"
	"os"

	"github.com/roost-dev/roost/workspace/terminal"
)

// Inline is the length of the longest result text, in bytes, that goes to the model whole.
const Inline = 256 << 10

// preview is the number of bytes from each end of a long result that the model gets.
const preview = 16 << 10

// KeepLong shortens a result that is longer than Inline to its two ends, and keeps the whole text in a file of its own
// in Env.SpoolDir, which becomes Result.Full.
func KeepLong(env Env, res *Result) error {
	if len(res.Text) <= Inline {
		return nil
	}
	f, err := os.CreateTemp(env.SpoolDir, "answer-*.txt") // mode 0600
	if err != nil {
		return fmt.Errorf("keep a long answer in %s: %w", env.SpoolDir, err)
	}
	_, err = f.WriteString(res.Text)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return errors.Join(fmt.Errorf("keep a long answer in %s: %w", f.Name(), err), os.Remove(f.Name()))
	}
	all := res.Text
	res.Full = &Spool{Path: f.Name(), Size: int64(len(all))}
	head, tail := terminal.Ends([]byte(all[:preview]), []byte(all[len(all)-preview:]))
	name := ""
	if env.ArtifactID != nil {
		name = " Artifact ID: " + env.ArtifactID() + " (read_command_output reads it)"
	}
	res.Text = fmt.Sprintf("The answer has %d bytes; it is kept whole.%s\n%s\n[...%d bytes omitted...]\n%s",
		len(all), name, head, len(all)-len(head)-len(tail), tail)
	return nil
}
