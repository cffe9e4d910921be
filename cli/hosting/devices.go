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
)

func (a *commands) devicesCommand() *cobra.Command {
	cmd := help.Command("devices", a.onServer("list the devices", a.listDevices))
	cmd.AddCommand(
		help.Command("devices add", a.onServer("add a device", a.addDevice)),
		help.Command("devices revoke",
			a.onServer("revoke a device", func(ctx context.Context, c *client.Client, args []string) error {
				return a.changeDevice(ctx, c, args[0], client.Request{Method: http.MethodDelete}, "logged out: ")
			})),
		help.Command("devices rename",
			a.onServer("rename a device", func(ctx context.Context, c *client.Client, args []string) error {
				rename := client.Request{Method: http.MethodPatch, Body: api.DevicePatch{Name: args[1]}}
				return a.changeDevice(ctx, c, args[0], rename, "renamed: ")
			})),
	)
	return cmd
}

// onServer makes a command's RunE from a function that needs a running server. what describes the act in error texts.
func (a *commands) onServer(what string, f func(context.Context, *client.Client, []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		return a.OnServer(what, func(c *client.Client) error { return f(cmd.Context(), c, args) })
	}
}

func (a *commands) listDevices(ctx context.Context, c *client.Client, _ []string) error {
	got, err := a.Pages(ctx, c, "/v1/devices", url.Values{}, 0)
	return app.ShowList(a.App, got, err, a.showDevices)
}

func (a *commands) showDevices(found []api.Device) {
	if len(found) == 0 {
		a.Say("no browser is logged in; roost open logs one in, roost devices add another device")
		return
	}
	rows := [][]string{{"ID", "NAME", "ADDRESS", "SINCE", "LAST SEEN"}}
	for _, d := range found {
		seen := a.When(&d.LastSeen)
		if d.Connected {
			seen = "connected now"
		}
		rows = append(rows, []string{d.ID, d.Name, d.Address, a.When(&d.FirstSeen), seen})
	}
	a.Grid(rows)
	a.Say("%s; log one out: roost devices revoke ID", api.Plural(len(found), "device"))
}

// addDevice prints a log-in link for another device, also as a QR code.
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

// showLAN prints how a device of the local network reaches the server, and the first steps on that device.
func (a *commands) showLAN(at api.LAN, link string) error {
	if err := a.printQR(link); err != nil {
		return err
	}
	a.Println("log in another device (the link works once, for 10 minutes): " + link)
	a.Say("A new device first warns about the certificate; %s explains how to make the device trust it.\n"+
		"Compare the fingerprint (SHA-256) that the device shows with this one:\n  %s", strings.TrimSuffix(at.URL, "/")+"/trust",
		strings.ReplaceAll(at.Fingerprint[:47], ":", " ")+"\n  "+strings.ReplaceAll(at.Fingerprint[48:], ":", " "))
	return nil
}

// printQR prints a text as a QR code, two of its rows on each line: dark on light if there are colours. Without
// colours a light terminal shows it inverted, which most cameras can read.
func (a *commands) printQR(text string) error {
	code, err := qr.Encode(text, qr.L)
	if err != nil {
		return fmt.Errorf("draw the link: %w", err)
	}
	const quiet = 2 // modules around the code
	begin, end := "", ""
	if a.OutTTY && a.OutStyle().On() {
		begin, end = "\x1b[38;5;231;48;5;16m", "\x1b[m"
	}
	light := func(x, y int) bool { return !code.Black(x, y) } // what is outside of the code is light
	blocks := map[[2]bool]string{{true, true}: "█", {true, false}: "▀", {false, true}: "▄", {}: " "}
	for y := -quiet; y < code.Size+quiet; y += 2 {
		fmt.Fprint(a.Out, begin)
		for x := -quiet; x < code.Size+quiet; x++ {
			fmt.Fprint(a.Out, blocks[[2]bool{light(x, y), light(x, y+1)}])
		}
		fmt.Fprintln(a.Out, end)
	}
	return nil
}

// device finds the one device with an id, the beginning of an id, or a name.
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
		return api.Device{}, failure.NotFound("no_such_device", "find the device "+given, "no device has that id or name",
			"roost devices")
	}
	return api.Device{}, failure.Usage("find the device "+given, fmt.Sprintf("%d devices fit", len(found)), "roost devices  # their ids")
}

// changeDevice makes a change of the device that a person named. done begins the line that is printed after the change.
func (a *commands) changeDevice(ctx context.Context, c *client.Client, given string, r client.Request, done string) error {
	d, err := device(ctx, c, given)
	if err != nil {
		return err
	}
	r.Path = "/v1/devices/" + url.PathEscape(d.ID)
	return app.Exchange(ctx, a.App, c, r, func(d api.Device) {
		a.Println(done + display.OneLine(d.ID) + "  " + display.OneLine(d.Name))
	})
}
