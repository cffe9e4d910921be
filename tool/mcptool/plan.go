package mcptool

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"unicode/utf8"

	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/mcp"
	"github.com/roost-dev/roost/tool"
)

// plan is a call that has been checked.
type plan struct {
	env tool.Env
	ask tool.Ask
	do  func(context.Context) (mcp.Result, error)
}

func (p *plan) Ask() tool.Ask { return p.ask }

// titleLimit is how many characters of the arguments are in the line by which a user decides; longer ones are shown
// whole below it.
const titleLimit = 200

func askTool(o mcp.Offer, arguments json.RawMessage) tool.Ask {
	var row esjson.Object
	row.String("type", "use_mcp_tool")
	row.String("serverName", o.Server)
	row.String("toolName", o.Tool)
	row.String("arguments", string(arguments))
	ask := tool.Ask{
		Tool: UseName, Kind: "use_mcp_server", Text: string(row.Bytes()), Paths: []string{o.Server + "/" + o.Tool},
		Title: tool.OneLine(o.Name + " " + string(arguments)),
	}
	if o.Always {
		ask.Agreed = "alwaysAllow of the server " + o.Server
	}
	if len(ask.Title) > titleLimit {
		end := titleLimit
		for !utf8.RuneStart(ask.Title[end]) {
			end--
		}
		ask.Title = ask.Title[:end] + "..."
		var pretty bytes.Buffer
		if json.Indent(&pretty, arguments, "", "  ") == nil {
			ask.Diff = pretty.String()
		}
	}
	return ask
}

func askResource(server, uri string) tool.Ask {
	var row esjson.Object
	row.String("type", "access_mcp_resource")
	row.String("serverName", server)
	row.String("uri", uri)
	return tool.Ask{
		Tool: AccessName, Kind: "use_mcp_server", Text: string(row.Bytes()), Paths: []string{server},
		Title: tool.OneLine(AccessName + " " + server + " " + uri),
	}
}

// Run calls the server. A missing answer is a result: the task continues.
func (p *plan) Run(ctx context.Context, _ tool.Output) (tool.Result, error) {
	answer, err := p.do(ctx)
	var failed *mcp.CallError
	switch {
	case err != nil && ctx.Err() != nil:
		return tool.Result{}, err
	case errors.As(err, &failed):
		return tool.Result{Text: "Error: " + failed.Error(), IsError: true, TimedOut: failed.Timeout}, nil
	case err != nil:
		return tool.Result{}, err
	}
	res := tool.Result{Text: answer.Text, IsError: answer.Failed}
	for _, image := range answer.Images {
		res.Images = append(res.Images, tool.ImageBlock(image.Media, image.Data))
	}
	if answer.Failed {
		res.Text = "Error:\n" + res.Text
	}
	if len(res.Text) > Inline {
		err = p.shorten(&res)
	}
	return res, err
}

// preview is how much of each end of a long result the model gets.
const preview = 16 << 10

// shorten keeps the whole text in a file of its own.
func (p *plan) shorten(res *tool.Result) error {
	f, err := os.CreateTemp(p.env.SpoolDir, "answer-*.txt") // mode 0600
	if err != nil {
		return fmt.Errorf("keep a long answer in %s: %w", p.env.SpoolDir, err)
	}
	_, err = f.WriteString(res.Text)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return errors.Join(fmt.Errorf("keep a long answer in %s: %w", f.Name(), err), os.Remove(f.Name()))
	}
	all := res.Text
	res.Full = &tool.Spool{Path: f.Name(), Size: int64(len(all))}
	head, tail := all[:preview], all[len(all)-preview:]
	// At line ends where one is near, else at characters: half a line may be half a secret, which masking does not
	// recognise.
	if i := strings.LastIndexByte(head, '\n'); i > preview/2 {
		head = head[:i+1]
	}
	if i := strings.IndexByte(tail, '\n'); i >= 0 && i < preview/2 {
		tail = tail[i+1:]
	}
	head, tail = strings.ToValidUTF8(head, ""), strings.ToValidUTF8(tail, "")
	name := ""
	if p.env.ArtifactID != nil {
		name = " Artifact ID: " + p.env.ArtifactID() + " (read_command_output reads it)"
	}
	res.Text = fmt.Sprintf("The answer has %d bytes; it is kept whole.%s\n%s\n[...%d bytes omitted...]\n%s",
		len(all), name, head, len(all)-len(head)-len(tail), tail)
	return nil
}
