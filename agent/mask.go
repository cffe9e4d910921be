package agent

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/roost-dev/roost/tool"
)

// mask hides the secrets in tool output.
func (a *Agent) mask(text string) string {
	if a.Host.Masks == nil {
		return text
	}
	masked, _ := a.Host.Masks.String(text)
	return masked
}

// maskAsk hides the secrets that a row and a question would show of files. A command stays as the model wrote it: the
// person judges it, and it runs, in exactly these words.
func (a *Agent) maskAsk(ask tool.Ask) tool.Ask {
	if ask.Kind == "tool" || ask.Kind == "use_mcp_server" {
		ask.Text, ask.Diff = a.mask(ask.Text), a.mask(ask.Diff)
	}
	if ask.Kind == "use_mcp_server" {
		ask.Title = a.mask(ask.Title)
	}
	return ask
}

// maskFile copies a command's whole output with its secrets hidden, next to the original: the model can read the copy,
// and it is projected into Roo's files.
func (a *Agent) maskFile(path string) (copied string, err error) {
	if a.Host.Masks == nil {
		return path, nil
	}
	from, err := os.Open(path)
	if err != nil {
		return "", fmt.Errorf("hide secrets in the output %s: %w", path, err)
	}
	defer from.Close()
	copied = path + ".masked"
	to, err := os.OpenFile(copied, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return "", fmt.Errorf("hide secrets in the output %s: %w", path, err)
	}
	w := a.Host.Masks.Writer(to)
	_, err = io.Copy(w, from)
	if err = errors.Join(err, w.Close(), to.Close()); err != nil {
		return "", fmt.Errorf("hide secrets in the output %s: %w", path, err)
	}
	return copied, nil
}
