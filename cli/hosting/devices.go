package hosting

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/spf13/cobra"
	"rsc.io/qr"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/cli/app"
	"github.com/roost-dev/roost/cli/failure"
	"github.com/roost-dev/roost/cli/help"
	display "github.com/roost-dev/roost/cli/term"
	"github.com/roost-dev/roost/client"
	"github.com/roost-dev/roost/view"
)

func (a *commands) devicesCommand() *cobra.Command {
	on := func(what string, f func(context.Context, *client.Client, []string) error) func(*cobra.Command, []string) error {
		return func(cmd *cobra.Command, args []string) error {
			return a.OnServer(what, func(c *client.Client) error { return f(cmd.Context(), c, args) })
		}
	}
	cmd := help.Command("devices", on("list the devices", a.listDevices))
	cmd.AddCommand(
		help.Command("devices add", on("add a device", a.addDevice)),
		help.CommandFor("devices revoke", cobra.NoFileCompletions, on("revoke a device", a.revokeDevice)),
		help.CommandFor("devices rename", cobra.NoFileCompletions, on("rename a device", a.renameDevice)),
	)
	return cmd
}

func (a *commands) listDevices(ctx context.Context, c *client.Client, _ []string) error {
	got, err := a.Pages(ctx, c, "/v1/devices", url.Values{}, 0)
	if err != nil {
		return err
	}
	return app.ShowList(a.App, got, a.showDevices)
}

func (a *commands) showDevices(found []api.Device) error {
	rows := [][]string{{"ID", "NAME", "ADDRESS", "SINCE", "LAST SEEN"}}
	for _, d := range found {
		seen := a.When(&d.LastSeen)
		if d.Connected {
			seen = "connected now"
		}
		rows = append(rows, []string{display.OneLine(d.ID), display.OneLine(d.Name), display.OneLine(d.Address), a.When(&d.FirstSeen), seen})
	}
	if len(found) == 0 {
		a.Say("no browser is logged in; roost open logs one in, roost devices add another device")
		return nil
	}
	widths := app.Widths(rows)
	for i, row := range rows {
		line := strings.TrimRight(app.Cells(row, widths, len(row), len(row)), " ")
		if i == 0 {
			line = a.OutStyle().Paint(view.Dim, line)
		}
		if _, err := fmt.Fprintln(a.Out, line); err != nil {
			return fmt.Errorf("print the devices: %w", err)
		}
	}
	a.Say("%d device%s; log one out: roost devices revoke ID", len(found), view.Plural(len(found)))
	return nil
}

// addDevice prints a log-in link for another device, as a QR code, too.
func (a *commands) addDevice(ctx context.Context, c *client.Client, _ []string) error {
	state, err := client.Get[api.Server](ctx, c, "/v1/server", nil)
	if err != nil {
		return err
	}
	if state.LAN == nil {
		return failure.New(failure.ExitConfig, "no_lan", "add a device", "the server is for this machine alone",
			"roost serve --lan  # after roost server stop; for a browser of this machine: roost open")
	}
	login, err := client.Post[api.Login](ctx, c, "/v1/server/logins", nil)
	if err != nil {
		return err
	}
	if a.Flags.JSON {
		return a.PrintJSON(login)
	}
	return a.showLAN(*state.LAN, login.LAN)
}

// showLAN prints how a device of the local network reaches the server, and what it has to do first.
func (a *commands) showLAN(at api.LAN, link string) error {
	if err := a.printQR(link); err != nil {
		return err
	}
	if err := a.Println("log in another device (the link works once, for 10 minutes): " + link); err != nil {
		return err
	}
	a.Say("A new device first warns about the certificate; %s explains how to make the device trust it.\n"+
		"Compare the fingerprint (SHA-256) that the device shows with this one:\n  %s", strings.TrimSuffix(at.URL, "/")+"/trust",
		strings.ReplaceAll(at.Fingerprint[:47], ":", " ")+"\n  "+strings.ReplaceAll(at.Fingerprint[48:], ":", " "))
	return nil
}

// printQR draws a text as a QR code, two rows of it in a line: dark on light where there are colours. Without colours a
// light terminal shows it inverted, which most cameras read.
func (a *commands) printQR(text string) error {
	code, err := qr.Encode(text, qr.L)
	if err != nil {
		return fmt.Errorf("draw the link: %w", err)
	}
	const quiet = 2 // modules around the code
	begin, end := "", ""
	if a.OutTTY && a.OutStyle().On {
		begin, end = "\x1b[38;5;231;48;5;16m", "\x1b[m"
	}
	light := func(x, y int) bool { return !code.Black(x, y) } // what is outside of the code is light
	var b strings.Builder
	for y := -quiet; y < code.Size+quiet; y += 2 {
		b.WriteString(begin)
		for x := -quiet; x < code.Size+quiet; x++ {
			switch upper, lower := light(x, y), light(x, y+1); {
			case upper && lower:
				b.WriteString("█")
			case upper:
				b.WriteString("▀")
			case lower:
				b.WriteString("▄")
			default:
				b.WriteString(" ")
			}
		}
		b.WriteString(end + "\n")
	}
	if _, err := fmt.Fprint(a.Out, b.String()); err != nil {
		return fmt.Errorf("print the link: %w", err)
	}
	return nil
}

// device is the one device that an id, the beginning of one, or a name means.
func device(ctx context.Context, c *client.Client, given string) (api.Device, error) {
	all, err := client.Get[api.Page[api.Device]](ctx, c, "/v1/devices", url.Values{"limit": {"1000"}})
	if err != nil {
		return api.Device{}, err
	}
	var found []api.Device
	for _, d := range all.Items {
		if d.ID == given {
			return d, nil
		}
		if strings.HasPrefix(d.ID, given) || d.Name == given {
			found = append(found, d)
		}
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		return api.Device{}, failure.New(failure.ExitNotFound, "no_such_device", "find the device "+given, "no device has that id or name",
			"roost devices")
	}
	return api.Device{}, failure.Usage("find the device "+given, fmt.Sprintf("%d devices fit", len(found)), "roost devices  # their ids")
}

func (a *commands) revokeDevice(ctx context.Context, c *client.Client, args []string) error {
	d, err := device(ctx, c, args[0])
	if err != nil {
		return err
	}
	return a.changeDevice(ctx, c, client.Request{Method: http.MethodDelete, Path: devicePath(d)}, "logged out: ")
}

func (a *commands) renameDevice(ctx context.Context, c *client.Client, args []string) error {
	d, err := device(ctx, c, args[0])
	if err != nil {
		return err
	}
	return a.changeDevice(ctx, c, client.Request{Method: http.MethodPatch, Path: devicePath(d), Body: api.DevicePatch{Name: args[1]}}, "renamed: ")
}

func devicePath(d api.Device) string { return "/v1/devices/" + url.PathEscape(d.ID) }

func (a *commands) changeDevice(ctx context.Context, c *client.Client, r client.Request, done string) error {
	return app.Exchange(ctx, a.App, c, r, func(d api.Device) error {
		return a.Println(done + display.OneLine(d.ID) + "  " + display.OneLine(d.Name))
	})
}
