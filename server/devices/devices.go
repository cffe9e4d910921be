// Package devices keeps the log-ins of browsers. Each browser that follows a log-in link is a device: it has a name, and
// whoever is logged in can see it and revoke it. A browser that is logged in and follows another link stays the same
// device.
//
// The cookie names the device and the end of its log-in, with a proof made with the server's token: a new token ends all
// log-ins. The file server/devices.json below the root holds the devices, and no secret. A cookie whose device is not in
// it is refused, so a damaged or missing file logs everybody out. Cookies without a record on disk were rejected: they
// cannot be revoked one by one.
package devices

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/internal/atomicfile"
	"github.com/roost-dev/roost/internal/inputfile"
)

const (
	// cookieDays is how long a log-in lasts, in days.
	cookieDays = 30
	// LinkLife is how long a log-in link works.
	LinkLife = 10 * time.Minute
	// linksMost bounds the log-in links that are open at a time; one more takes the place of the oldest.
	linksMost = 8
	// devicesMost bounds the devices; one more takes the place of the one that was seen last the longest ago.
	devicesMost = 100
	// savedEvery is how old the times on disk may be: each request changes them.
	savedEvery = time.Minute
	// nameMost bounds a name, in characters.
	nameMost = 60
)

// ErrUnknown: there is no such device.
var ErrUnknown = errors.New("no such device")

// ErrName: a device cannot have that name.
var ErrName = fmt.Errorf("want a name of 1 to %d visible characters", nameMost)

// Devices are the devices of one server. It is safe for concurrent use. The file is read with the first request that has
// a cookie.
type Devices struct {
	file  string
	token string
	now   func() time.Time

	mu     sync.Mutex
	loaded bool
	saved  time.Time
	links  []link // that were not used, the oldest first
	all    map[string]*device
}

type link struct {
	key string
	end time.Time
}

// device is one device, and what its file holds of it. Times are Unix milliseconds.
type device struct {
	ID      string `json:"id"`
	Name    string `json:"name"`
	Address string `json:"address"`
	First   int64  `json:"first_seen"`
	Last    int64  `json:"last_seen"`
	Until   int64  `json:"until"`

	requests int             // that are being answered
	in       context.Context //nolint:containedctx // it ends with the log-in, and the requests of the device with it
	revoke   context.CancelFunc
}

// kept is the content of the file.
type kept struct {
	Token   string    `json:"token"` // a digest: the devices belong to this token
	Devices []*device `json:"devices"`
}

// New returns the devices that log in to the server of a root with a token. It reads nothing yet.
func New(root, token string, now func() time.Time) *Devices {
	return &Devices{file: filepath.Join(root, "server", "devices.json"), token: token, now: now, all: map[string]*device{}}
}

// Link makes a log-in link, which works once within LinkLife, and returns its path and query.
func (d *Devices) Link() (string, error) {
	key, err := random(32)
	if err != nil {
		return "", err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.links = append(d.links, link{key, d.now().Add(LinkLife)}); len(d.links) > linksMost {
		d.links = d.links[1:]
	}
	return "/login?key=" + key, nil
}

// use accepts the key of a link, once.
func (d *Devices) use(key string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	i := slices.IndexFunc(d.links, func(l link) bool { return Same(key, l.key) })
	if i < 0 {
		return false
	}
	end := d.links[i].end
	d.links = slices.Delete(d.links, i, i+1)
	return d.now().Before(end)
}

// LogIn uses the key of a link and returns the cookie of the device; nil when the key is not good. address is where the
// request comes from.
func (d *Devices) LogIn(r *http.Request, key, address string) (*http.Cookie, error) {
	if !d.use(key) {
		return nil, nil //nolint:nilnil // no cookie, and nothing failed
	}
	known, err := d.of(r)
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.load(); err != nil {
		return nil, err
	}
	now := d.now()
	if known == nil || d.all[known.ID] == nil {
		id, err := random(4)
		if err != nil {
			return nil, err
		}
		known = &device{ID: id, Name: nameOf(r.UserAgent()), First: now.UnixMilli()}
		known.in, known.revoke = context.WithCancel(context.Background())
		d.all[id] = known
		d.drop(now)
	}
	known.Last, known.Address, known.Until = now.UnixMilli(), address, now.AddDate(0, 0, cookieDays).UnixMilli()
	if err := d.save(); err != nil {
		return nil, err
	}
	return d.cookie(known, r.TLS != nil), nil
}

// drop forgets devices whose log-in has ended, and the one that was seen last the longest ago when there are too many.
func (d *Devices) drop(now time.Time) {
	for id, one := range d.all {
		if one.Until != 0 && one.Until <= now.UnixMilli() {
			one.revoke()
			delete(d.all, id)
		}
	}
	for len(d.all) > devicesMost {
		var oldest *device
		for _, one := range d.all {
			if one.Until != 0 && (oldest == nil || one.Last < oldest.Last) { // 0: it is logging in
				oldest = one
			}
		}
		oldest.revoke()
		delete(d.all, oldest.ID)
	}
}

// CookieName contains a digest of the token: browsers do not separate cookies by port, and two servers on one machine
// must not log each other out.
func (d *Devices) CookieName() string {
	sum := sha256.Sum256([]byte("cookie name " + d.token))
	return "roost_" + hex.EncodeToString(sum[:4])
}

// cookie is the log-in of a device.
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

// of is the device whose log-in a request has; nil without one.
func (d *Devices) of(r *http.Request) (*device, error) {
	for _, c := range r.CookiesNamed(d.CookieName()) {
		id, rest, _ := strings.Cut(c.Value, ".")
		until, proof, _ := strings.Cut(rest, ".")
		at, err := strconv.ParseInt(until, 10, 64)
		if !Same(proof, d.proof(id, until)) || err != nil || d.now().Unix() >= at {
			continue
		}
		d.mu.Lock()
		err = d.load()
		one := d.all[id]
		d.mu.Unlock()
		if err != nil || one != nil {
			return one, err
		}
	}
	return nil, nil //nolint:nilnil // no device, and nothing failed
}

// Knows reports whether a request has the log-in of a device.
func (d *Devices) Knows(r *http.Request) bool {
	one, err := d.of(r)
	return one != nil && err == nil
}

type deviceKey struct{}

// Enter lets a request of a device in: its context ends when the device is revoked. ok is false without a log-in. leave
// must be called when the request was answered.
func (d *Devices) Enter(r *http.Request, address string) (in *http.Request, leave func(), ok bool) {
	one, err := d.of(r)
	if one == nil || err != nil {
		return r, func() {}, false
	}
	d.mu.Lock()
	now := d.now()
	one.requests++
	one.Last, one.Address = now.UnixMilli(), address
	if now.Sub(d.saved) >= savedEvery {
		_ = d.save() // the times are not worth a refusal
	}
	d.mu.Unlock()
	ctx, cancel := context.WithCancel(context.WithValue(r.Context(), deviceKey{}, one.ID))
	undo := context.AfterFunc(one.in, cancel)
	return r.WithContext(ctx), func() {
		undo()
		cancel()
		d.mu.Lock()
		defer d.mu.Unlock()
		one.requests--
		one.Last = d.now().UnixMilli() // a stream ends long after it began
	}, true
}

// List returns the devices, the one that was seen last first. ctx is the context of a request, which marks its device.
func (d *Devices) List(ctx context.Context) ([]api.Device, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.load(); err != nil {
		return nil, err
	}
	all := make([]*device, 0, len(d.all))
	for _, one := range d.all {
		if one.Until > d.now().UnixMilli() {
			all = append(all, one)
		}
	}
	slices.SortFunc(all, func(a, b *device) int {
		if a.Last != b.Last {
			return int(b.Last/1000 - a.Last/1000)
		}
		return strings.Compare(a.ID, b.ID)
	})
	out := make([]api.Device, len(all))
	for i, one := range all {
		out[i] = one.document(ctx)
	}
	return out, nil
}

func (one *device) document(ctx context.Context) api.Device {
	current, _ := ctx.Value(deviceKey{}).(string)
	return api.Device{
		ID:        one.ID,
		Name:      one.Name,
		Address:   one.Address,
		FirstSeen: api.Stamp(one.First),
		LastSeen:  api.Stamp(one.Last),
		Until:     api.Stamp(one.Until),
		Connected: one.requests > 0,
		Current:   current == one.ID,
	}
}

// Revoke ends the log-in of a device, and its requests and streams at once. ErrUnknown: there is no such device.
func (d *Devices) Revoke(ctx context.Context, id string) (api.Device, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	one, err := d.get(id)
	if err != nil {
		return api.Device{}, err
	}
	delete(d.all, id)
	one.revoke()
	return one.document(ctx), d.save()
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
	one, err := d.get(id)
	if err != nil {
		return api.Device{}, err
	}
	one.Name = name
	return one.document(ctx), d.save()
}

// get is a device by its id. The caller holds mu.
func (d *Devices) get(id string) (*device, error) {
	if err := d.load(); err != nil {
		return nil, err
	}
	if one := d.all[id]; one != nil {
		return one, nil
	}
	return nil, ErrUnknown
}

// Save writes the newest times to disk, when the server ends.
func (d *Devices) Save() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.loaded || len(d.all) == 0 {
		return nil
	}
	return d.save()
}

// load reads the file, once. The caller holds mu.
func (d *Devices) load() error {
	if d.loaded {
		return nil
	}
	data, err := inputfile.Read(d.file)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("read the devices that are logged in: %w", err)
	}
	var k kept
	if err == nil && json.Unmarshal(data, &k) == nil && k.Token == d.tokenSum() {
		for _, one := range k.Devices {
			if one == nil || one.ID == "" {
				continue
			}
			one.in, one.revoke = context.WithCancel(context.Background())
			d.all[one.ID] = one
		}
	}
	d.loaded, d.saved = true, d.now()
	return nil
}

// save writes the file. The caller holds mu.
func (d *Devices) save() error {
	k := kept{Token: d.tokenSum(), Devices: []*device{}}
	for _, one := range d.all {
		k.Devices = append(k.Devices, one)
	}
	slices.SortFunc(k.Devices, func(a, b *device) int { return strings.Compare(a.ID, b.ID) })
	data, err := json.MarshalIndent(k, "", " ")
	if err == nil {
		err = os.MkdirAll(filepath.Dir(d.file), 0o700)
	}
	if err == nil {
		err = atomicfile.Write(d.file, append(data, '\n'))
	}
	if err != nil {
		return fmt.Errorf("save the devices that are logged in: %w", err)
	}
	d.saved = d.now()
	return nil
}

func (d *Devices) tokenSum() string {
	sum := sha256.Sum256([]byte("devices of " + d.token))
	return hex.EncodeToString(sum[:])
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

func random(bytes int) (string, error) {
	b := make([]byte, bytes)
	if _, err := rand.Read(b); err != nil {
		return "", fmt.Errorf("make a secret: %w", err)
	}
	return hex.EncodeToString(b), nil
}
