// Package devices keeps the log-ins of browsers. Each browser that follows a log-in link is a device with a name, which
// every logged-in user can see and revoke. A logged-in browser that follows another link stays the same device;
// if the link is of another account, the requests of the account before end.
//
// The cookie names the device and the end of its log-in, with a proof made with the server's token: a new token ends all
// log-ins. The file server/devices.json below the root holds the devices, and no secret. The server refuses a cookie whose
// device is not in the file, so a damaged or missing file ends all log-ins. Cookies without a record on disk were
// rejected: they cannot be revoked one by one.
//
// Servers that share a database and a token share the devices, too (InDatabase): a link works on each of them, and so does
// a log-in. A server reads the devices again half a second after the last reading, and repeatedly while it answers a
// device, so that a log-in that another server revokes ends here within a second. Connected counts requests to this
// server alone.
package devices

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/roost-dev/roost/api"
)

const (
	// cookieDays is how long a log-in lasts, in days.
	cookieDays = 30
	// LinkLife is how long a log-in link works.
	LinkLife = 10 * time.Minute
	// devicesMost bounds the devices; one more replaces the device that has been unseen for the longest time.
	devicesMost = 100
	// savedEvery limits the age of the times on disk; each request changes only the times in memory.
	savedEvery = time.Minute
	// nameMost bounds a name, in characters.
	nameMost = 60
	// readEvery limits the age of the last reading of a shared place.
	readEvery = 500 * time.Millisecond
	// patience bounds the time of a reading of a shared place outside of requests.
	patience = 5 * time.Second
)

// ErrUnknown: there is no such device.
var ErrUnknown = errors.New("no such device")

// ErrName: a device cannot have that name.
var ErrName = fmt.Errorf("want a name of 1 to %d visible characters", nameMost)

// Devices are the devices of one server, or of all servers that share a database. It is safe for concurrent use. The first
// request with a cookie reads them.
type Devices struct {
	place place
	token string
	now   func() time.Time

	mu    sync.Mutex
	saved time.Time
	all   map[string]*device

	requests int           // open requests of all devices
	idle     chan struct{} // closed when the last open request ends; ends watch
	work     sync.WaitGroup
}

// place stores devices and log-in links.
type place interface {
	// read returns the devices; fresh is false if nothing was read since the last reading. With now it reads even if the
	// last reading is recent.
	read(ctx context.Context, now bool) (list []*device, fresh bool, err error)
	// write stores a change. all are the devices after the change.
	write(ctx context.Context, all map[string]*device, c change) error
	// link stores the key of a log-in link, and the id of the account token that made it; "" without accounts.
	link(ctx context.Context, key, token string) error
	// use removes the key of a link. It reports whether the key worked, and the token that made the link.
	use(ctx context.Context, key string) (token string, good bool, err error)
	// shared reports whether other servers change the devices, too.
	shared() bool
}

// change is a change of devices.
type change struct {
	in      *device // the device that logged in; nil: none
	named   *device // the device that got a new name; nil: none
	removed []string
}

// device is one device; the file has the members with JSON names. Times are Unix milliseconds.
type device struct {
	ID      string `json:"id"`
	Name    string `json:"name"`
	Address string `json:"address"`
	First   int64  `json:"first_seen"`
	Last    int64  `json:"last_seen"`
	Until   int64  `json:"until"`
	Token   string `json:"account_token,omitempty"` // the id of the account token that it is logged in with

	met      bool            // it sent a request since its times were stored
	requests int             // the number of its open requests
	in       context.Context //nolint:containedctx // ends with the log-in, and ends the device's requests
	revoke   context.CancelFunc
}

// New returns the devices that log in to the server of a root with a token. It reads nothing yet.
func New(root, token string, now func() time.Time) *Devices {
	return open(&file{path: filepath.Join(root, "server", "devices.json"), token: token, now: now}, token, now)
}

func open(p place, token string, now func() time.Time) *Devices {
	return &Devices{place: p, token: token, now: now, all: map[string]*device{}}
}

// Link makes a log-in link, which works once within LinkLife, and returns its path and query.
func (d *Devices) Link(ctx context.Context) (string, error) { return d.LinkFor(ctx, "") }

// LinkFor is Link for an account, by the id of its token: the log-in belongs to the account while the token works.
func (d *Devices) LinkFor(ctx context.Context, token string) (string, error) {
	key := Secret(32)
	return "/login?key=" + key, d.place.link(ctx, key, token)
}

// LogIn uses the key of a link and returns the cookie of the device; nil if the key does not work. address is the
// browser's. other: the log-in is for an account, and the browser's last log-in was for another one, or has ended: the
// server keeps no account of ended log-ins.
func (d *Devices) LogIn(r *http.Request, key, address string) (cookie *http.Cookie, other bool, err error) {
	token, good, err := d.place.use(r.Context(), key)
	if !good || err != nil {
		return nil, false, err // without an error the key does not work
	}
	known, err := d.of(r)
	if err != nil {
		return nil, false, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.load(r.Context(), true); err != nil {
		return nil, false, err
	}
	now := d.now()
	var c change
	if known == nil || d.all[known.ID] == nil {
		id := Secret(4)
		known = &device{ID: id, Name: nameOf(r.UserAgent()), First: now.UnixMilli()}
		known.begin()
		d.all[id] = known
		c.removed = d.drop(now)
	}
	other, known.Token = known.Token != token, token
	known.Last, known.Address, known.Until = now.UnixMilli(), address, now.AddDate(0, 0, cookieDays).UnixMilli()
	c.in, known.met = known, true
	if err := d.save(r.Context(), c); err != nil {
		return nil, false, err
	}
	if other {
		known.begin()
	}
	return d.cookie(known, r.TLS != nil), other, nil
}

// begin begins a log-in, and ends the requests of the one before: a stream of one account must not go on under another.
func (one *device) begin() {
	if one.revoke != nil {
		one.revoke()
	}
	one.in, one.revoke = context.WithCancel(context.Background())
}

// drop removes devices whose log-in has ended and, while there are too many, the device that has been unseen for the
// longest time. It returns their ids.
func (d *Devices) drop(now time.Time) (removed []string) {
	for id, one := range d.all {
		if one.Until != 0 && one.Until <= now.UnixMilli() {
			one.revoke()
			delete(d.all, id)
			removed = append(removed, id)
		}
	}
	for len(d.all) > devicesMost {
		var oldest *device
		for _, one := range d.all {
			if one.Until != 0 && (oldest == nil || one.Last < oldest.Last) { // 0: the device is logging in
				oldest = one
			}
		}
		oldest.revoke()
		delete(d.all, oldest.ID)
		removed = append(removed, oldest.ID)
	}
	return removed
}

// CookieName returns the name of the cookie, which contains a digest of the token: browsers do not separate cookies
// by port, and two servers on one machine must not log each other out.
func (d *Devices) CookieName() string {
	sum := sha256.Sum256([]byte("cookie name " + d.token))
	return "roost_" + hex.EncodeToString(sum[:4])
}

// cookie returns the log-in of a device.
func (d *Devices) cookie(one *device, secure bool) *http.Cookie {
	until := strconv.FormatInt(one.Until/1000, 10)
	return &http.Cookie{ //nolint:gosec // without TLS, on loopback only, browsers drop a Secure cookie
		Name: d.CookieName(), Value: one.ID + "." + until + "." + d.proof(one.ID, until), Path: "/", MaxAge: cookieDays * 24 * 3600,
		HttpOnly: true, Secure: secure, SameSite: http.SameSiteStrictMode,
	}
}

func (d *Devices) proof(id, until string) string {
	mac := hmac.New(sha256.New, []byte(d.token))
	mac.Write([]byte("log-in of " + id + " until " + until))
	return hex.EncodeToString(mac.Sum(nil))
}

// of returns the device that a request is logged in with; nil without one.
func (d *Devices) of(r *http.Request) (*device, error) {
	if one, entered := r.Context().Value(deviceKey{}).(*device); entered {
		return one, nil
	}
	for _, c := range r.CookiesNamed(d.CookieName()) {
		id, rest, _ := strings.Cut(c.Value, ".")
		until, proof, _ := strings.Cut(rest, ".")
		at, err := strconv.ParseInt(until, 10, 64)
		if !Same(proof, d.proof(id, until)) || err != nil || d.now().Unix() >= at {
			continue
		}
		d.mu.Lock()
		err = d.load(r.Context(), false)
		one := d.all[id]
		if err == nil && one == nil { // another server may have logged the device in just now
			err = d.load(r.Context(), true)
			one = d.all[id]
		}
		d.mu.Unlock()
		if err != nil || one != nil {
			return one, err
		}
	}
	return nil, nil //nolint:nilnil // no device, and nothing failed
}

// Knows reports whether a request has the log-in of a device. token is the id of the account token of that log-in; "" without
// accounts.
func (d *Devices) Knows(r *http.Request) (token string, in bool, err error) {
	one, err := d.of(r)
	if one == nil || err != nil {
		return "", false, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return one.Token, true, nil
}

type deviceKey struct{}

// Enter admits a request of a device: the request's context ends when the device is revoked. ok is false without a log-in.
// The caller calls leave once the request is answered.
func (d *Devices) Enter(r *http.Request, address string) (in *http.Request, leave func(), ok bool) {
	one, err := d.of(r)
	if one == nil || err != nil {
		return r, func() {}, false
	}
	d.mu.Lock()
	now := d.now()
	one.requests++
	one.Last, one.Address, one.met = now.UnixMilli(), address, true
	if now.Sub(d.saved) >= savedEvery {
		_ = d.save(r.Context(), change{}) // a failure to store times is no reason to refuse
	}
	// While requests are open, watch follows the changes of other servers.
	if d.requests++; d.requests == 1 && d.place.shared() {
		idle := make(chan struct{})
		d.idle = idle
		d.work.Go(func() { d.watch(idle) })
	}
	until := one.in
	d.mu.Unlock()
	ctx, cancel := context.WithCancel(context.WithValue(r.Context(), deviceKey{}, one))
	undo := context.AfterFunc(until, cancel)
	return r.WithContext(ctx), func() {
		undo()
		cancel()
		d.mu.Lock()
		defer d.mu.Unlock()
		one.requests--
		one.Last, one.met = d.now().UnixMilli(), true // a stream ends long after it began
		if d.requests--; d.requests == 0 {
			d.rest()
		}
	}, true
}

// rest ends watch. The caller holds mu.
func (d *Devices) rest() {
	if d.idle != nil {
		close(d.idle)
		d.idle = nil
	}
}

// watch ends the requests of devices that another server revokes. While the database does not answer, they continue.
func (d *Devices) watch(idle <-chan struct{}) {
	tick := time.NewTicker(readEvery)
	defer tick.Stop()
	for {
		select {
		case <-idle:
			return
		case <-tick.C:
		}
		ctx, stop := context.WithTimeout(context.Background(), patience)
		d.mu.Lock()
		_ = d.load(ctx, false) // a later reading may succeed
		d.mu.Unlock()
		stop()
	}
}

// List returns the devices, the last seen first. ctx is the context of a request, whose device is marked.
func (d *Devices) List(ctx context.Context) ([]api.Device, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.load(ctx, true); err != nil {
		return nil, err
	}
	all := make([]*device, 0, len(d.all))
	for _, one := range d.all {
		if one.Until > d.now().UnixMilli() {
			all = append(all, one)
		}
	}
	slices.SortFunc(all, func(a, b *device) int {
		return cmp.Or(cmp.Compare(b.Last/1000, a.Last/1000), strings.Compare(a.ID, b.ID))
	})
	return api.Each(all, func(one *device) api.Device { return one.document(ctx) }), nil
}

func (one *device) document(ctx context.Context) api.Device {
	current, _ := ctx.Value(deviceKey{}).(*device)
	return api.Device{
		ID:        one.ID,
		Name:      one.Name,
		Address:   one.Address,
		FirstSeen: api.Stamp(one.First),
		LastSeen:  api.Stamp(one.Last),
		Until:     api.Stamp(one.Until),
		Connected: one.requests > 0,
		Current:   current == one,
	}
}

// Revoke ends the log-in of a device, and its requests and streams at once. ErrUnknown: there is no such device.
func (d *Devices) Revoke(ctx context.Context, id string) (api.Device, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	one, err := d.get(ctx, id)
	if err != nil {
		return api.Device{}, err
	}
	delete(d.all, id)
	one.revoke()
	return one.document(ctx), d.save(ctx, change{removed: []string{id}})
}

// Rename names a device. ErrUnknown: there is no such device; ErrName: it cannot have that name.
func (d *Devices) Rename(ctx context.Context, id, name string) (api.Device, error) {
	name = strings.TrimSpace(name)
	if name == "" || utf8.RuneCountInString(name) > nameMost || !utf8.ValidString(name) ||
		strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return api.Device{}, ErrName
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	one, err := d.get(ctx, id)
	if err != nil {
		return api.Device{}, err
	}
	one.Name = name
	return one.document(ctx), d.save(ctx, change{named: one})
}

// get returns a device by its id. The caller holds mu.
func (d *Devices) get(ctx context.Context, id string) (*device, error) {
	if err := d.load(ctx, true); err != nil {
		return nil, err
	}
	if one := d.all[id]; one != nil {
		return one, nil
	}
	return nil, ErrUnknown
}

// Save stores the newest times. The server calls it at its end, after it has answered all requests.
func (d *Devices) Save(ctx context.Context) error {
	d.mu.Lock()
	d.rest()
	d.mu.Unlock()
	d.work.Wait()
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.all) == 0 {
		return nil
	}
	return d.save(ctx, change{})
}

// load reads the devices if the last reading is old, or if now is set. The caller holds mu.
func (d *Devices) load(ctx context.Context, now bool) error {
	list, fresh, err := d.place.read(ctx, now)
	if err != nil {
		return fmt.Errorf("read the devices that are logged in: %w", err)
	}
	if !fresh {
		return nil
	}
	if d.saved.IsZero() {
		d.saved = d.now()
	}
	there := map[string]bool{}
	for _, is := range list {
		there[is.ID] = true
		if one := d.all[is.ID]; one != nil {
			if one.Token != is.Token {
				one.begin()
			}
			one.Name, one.Until, one.Last, one.Token = is.Name, is.Until, max(one.Last, is.Last), is.Token
			continue
		}
		is.begin()
		d.all[is.ID] = is
	}
	for id, one := range d.all {
		if !there[id] {
			one.revoke()
			delete(d.all, id)
		}
	}
	return nil
}

// save stores a change and the newest times. The caller holds mu.
func (d *Devices) save(ctx context.Context, c change) error {
	if err := d.place.write(ctx, d.all, c); err != nil {
		return fmt.Errorf("save the devices that are logged in: %w", err)
	}
	for _, one := range d.all {
		one.met = false
	}
	d.saved = d.now()
	return nil
}

// nameOf names a device by the name that its browser sends.
func nameOf(agent string) string {
	find := func(words [][2]string) string {
		for _, w := range words {
			if strings.Contains(agent, w[0]) {
				return w[1]
			}
		}
		return ""
	}
	browser := find([][2]string{
		{"Edg", "Edge"}, {"OPR/", "Opera"}, {"SamsungBrowser/", "Samsung Internet"}, {"Firefox/", "Firefox"}, {"FxiOS/", "Firefox"},
		{"CriOS/", "Chrome"}, {"Chrome/", "Chrome"}, {"Safari/", "Safari"}, {"AppleWebKit/", "Safari"},
	})
	system := find([][2]string{
		{"iPhone", "iPhone"}, {"iPad", "iPad"}, {"Android", "Android"}, {"CrOS", "ChromeOS"}, {"Windows", "Windows"},
		{"Macintosh", "Mac"}, {"Linux", "Linux"},
	})
	switch {
	case browser == "":
		return "Another program"
	case system == "":
		return browser
	}
	return browser + " on " + system
}

// Same compares secrets in constant time.
func Same(a, b string) bool {
	x, y := sha256.Sum256([]byte(a)), sha256.Sum256([]byte(b))
	return subtle.ConstantTimeCompare(x[:], y[:]) == 1
}

// Secret is random bytes in hexadecimal.
func Secret(bytes int) string {
	b := make([]byte, bytes)
	_, _ = rand.Read(b) // never fails
	return hex.EncodeToString(b)
}
