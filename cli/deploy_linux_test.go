package cli

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/jackc/pgx/v5"
	"github.com/spf13/cobra"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/cli/app"
	"github.com/roost-dev/roost/cli/failure"
	"github.com/roost-dev/roost/internal/testing/pgtest"
)

// composeFile is what deploy/compose.yaml may hold: another member is a mistake.
type composeFile struct {
	Roost       any `json:"x-roost"`
	Environment any `json:"x-environment"`
	Services    map[string]struct {
		Image, User, Restart string
		Init                 bool
		Command              []string
		Environment          map[string]string
		Volumes, Ports       []string
		DependsOn            map[string]struct{ Condition string } `json:"depends_on"`
		StopSignal           string                                `json:"stop_signal"`
		StopTime             string                                `json:"stop_grace_period"`
		Security             []string                              `json:"security_opt"`
		Drop                 []string                              `json:"cap_drop"`
		Health               struct {
			Test              []string
			Interval, Timeout string
			Start             string `json:"start_period"`
		} `json:"healthcheck"`
	}
	Volumes map[string]any
}

// statefulSet, claim, service and budget are what deploy/kubernetes.yaml may hold.
type statefulSet struct {
	object
	Spec struct {
		ServiceName string         `json:"serviceName"`
		Policy      string         `json:"podManagementPolicy"`
		Update      map[string]any `json:"updateStrategy"`
		Replicas    int
		Selector    selector
		Template    struct {
			Metadata struct{ Labels map[string]string }
			Spec     pod
		}
	}
}

type object struct {
	APIVersion string `json:"apiVersion"`
	Kind       string
	Metadata   struct {
		Name   string
		Labels map[string]string
	}
}

type selector struct {
	Labels map[string]string `json:"matchLabels"`
}

type pod struct {
	StopTime int  `json:"terminationGracePeriodSeconds"`
	Token    bool `json:"automountServiceAccountToken"`
	Security struct {
		NonRoot bool   `json:"runAsNonRoot"`
		User    int    `json:"runAsUser"`
		Group   int    `json:"runAsGroup"`
		FSGroup int    `json:"fsGroup"`
		Change  string `json:"fsGroupChangePolicy"`
		Seccomp any    `json:"seccompProfile"`
	} `json:"securityContext"`
	Spread     []any `json:"topologySpreadConstraints"`
	Containers []container
	Volumes    []struct {
		Name     string
		EmptyDir any `json:"emptyDir"`
		Secret   struct {
			Name  string `json:"secretName"`
			Mode  int    `json:"defaultMode"`
			Items []struct{ Key, Path string }
		}
		Claim struct {
			Name string `json:"claimName"`
		} `json:"persistentVolumeClaim"`
	}
}

type container struct {
	Name, Image string
	Args        []string
	Env         []struct {
		Name, Value string
		From        struct {
			Secret struct{ Name, Key string } `json:"secretKeyRef"`
			Field  struct {
				Path string `json:"fieldPath"`
			} `json:"fieldRef"`
		} `json:"valueFrom"`
	}
	Ports []struct {
		Name string
		Port int `json:"containerPort"`
	}
	Startup   probe `json:"startupProbe"`
	Liveness  probe `json:"livenessProbe"`
	Readiness probe `json:"readinessProbe"`
	Lifecycle struct {
		PreStop struct {
			Exec struct{ Command []string }
		} `json:"preStop"`
	}
	Resources struct{ Requests, Limits map[string]string }
	Security  struct {
		Escalation   bool `json:"allowPrivilegeEscalation"`
		ReadOnly     bool `json:"readOnlyRootFilesystem"`
		Capabilities struct{ Drop []string }
	} `json:"securityContext"`
	Mounts []struct {
		Name     string
		Path     string `json:"mountPath"`
		ReadOnly bool   `json:"readOnly"`
	} `json:"volumeMounts"`
}

type probe struct {
	Get struct {
		Path, Port, Scheme string
		Headers            []struct{ Name, Value string } `json:"httpHeaders"`
	} `json:"httpGet"`
	Period   int `json:"periodSeconds"`
	Timeout  int `json:"timeoutSeconds"`
	Failures int `json:"failureThreshold"`
}

type claim struct {
	object
	Spec struct {
		Modes     []string `json:"accessModes"`
		Resources struct{ Requests map[string]string }
	}
}

type networkService struct {
	object
	Spec struct {
		ClusterIP string `json:"clusterIP"`
		NotReady  bool   `json:"publishNotReadyAddresses"`
		Selector  map[string]string
		Ports     []struct {
			Name, TargetPort string
			Port             int
		}
	}
}

type budget struct {
	object
	Spec struct {
		MaxUnavailable int `json:"maxUnavailable"`
		Selector       selector
	}
}

// deployed is a server as a file starts it.
type deployed struct {
	name  string
	args  []string
	env   map[string]string
	paths []string // where folders and files of others are mounted
	flag  func(string) string
}

// notes are the comments that a file begins with, which tell its reader what to do.
func notes(text string) (out string) {
	for _, line := range strings.Split(text, "\n") {
		if line, ok := strings.CutPrefix(line, "#"); ok {
			out += strings.TrimSpace(line) + "\n"
			continue
		}
		break
	}
	return strings.ReplaceAll(out, "\\\n", " ")
}

// decode reads a document of YAML into a value that has all its members.
func decode(t *testing.T, text []byte, into any) {
	t.Helper()
	var v any
	must(t, yaml.Unmarshal(text, &v))
	data, err := json.Marshal(v)
	must(t, err)
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		t.Fatalf("got %v, want only members that the test knows in\n%s", err, text)
	}
}

// parsed gives the command that a command line of roost names, and a function for its flags.
func parsed(t *testing.T, args []string) (command string, flag func(string) string) {
	t.Helper()
	var cmd *cobra.Command
	cmd, rest, err := rootCommand(&app.App{Env: func(string) string { return "" }}).Find(args)
	if err == nil {
		err = cmd.ParseFlags(rest)
	}
	if err == nil {
		err = cmd.ValidateArgs(cmd.Flags().Args())
	}
	if err == nil && cmd.HasSubCommands() {
		err = fmt.Errorf("%s is no whole command", cmd.CommandPath())
	}
	if err != nil {
		t.Errorf("roost %s: got %v, want a command line of this program", strings.Join(args, " "), err)
	}
	return cmd.CommandPath(), func(name string) string {
		f := cmd.Flag(name)
		if f == nil {
			t.Fatalf("roost %s has no flag --%s", cmd.CommandPath(), name)
		}
		return f.Value.String()
	}
}

// released are the name of the image that runs tasks, and its user, as tools/release makes it.
func released(t *testing.T) (image string, user int) {
	t.Helper()
	source, err := os.ReadFile("../tools/release/image.go")
	must(t, err)
	find := func(pattern string) string {
		found := regexp.MustCompile(pattern).FindSubmatch(source)
		if found == nil {
			t.Fatalf("tools/release/image.go has no %s: say here where it names its image and user now", pattern)
		}
		return string(found[1])
	}
	user, err = strconv.Atoi(find(`(?m)^const userID = (\d+)$`))
	must(t, err)
	if got := find(`Entrypoint: \[\]string\{"(.*?)"\}`); got != "/usr/bin/roost" {
		t.Errorf("the image starts %s, and the files give arguments of roost", got)
	}
	return find(`"(localhost/)"\+image\.tag\+":"`) + find(`\{"image-tasks", "(\S+)",`), user
}

// fits checks what holds for a server wherever it runs.
func (d *deployed) fits(t *testing.T, stop, before time.Duration) {
	t.Helper()
	var command string
	if command, d.flag = parsed(t, d.args); command != "roost serve" {
		t.Errorf("%s: got %s, want roost serve", d.name, command)
	}
	drain, err := time.ParseDuration(d.flag("drain-timeout"))
	must(t, err)
	if least := before + drain + 10*time.Second; stop < least {
		t.Errorf("%s: got %v to stop, want at least %v: %v before it hears of it, %v to finish runs, and time to save the rest",
			d.name, stop, least, before, drain)
	}
	root := cmp.Or(d.flag("root"), d.env["ROOST_ROOT"])
	for name, path := range map[string]string{
		"--root": root, "--store-key": d.flag("store-key"), "--tls-cert": d.flag("tls-cert"), "--tls-key": d.flag("tls-key"),
		"ROOST_CACHE": cmp.Or(d.env["ROOST_CACHE"], root), "SSL_CERT_DIR": d.env["SSL_CERT_DIR"], "workspaces": "/work",
	} {
		if !slices.ContainsFunc(d.paths, func(mount string) bool { return path == mount || strings.HasPrefix(path, mount+"/") }) {
			t.Errorf("%s: %s is %q, want it in what is mounted: %q", d.name, name, path, d.paths)
		}
	}
	if d.flag("auto-resume") != "true" {
		t.Errorf("%s has no --auto-resume: what a rolling restart interrupts would stay so", d.name)
	}
	store, err := url.Parse(d.flag("store"))
	if _, has := store.User.Password(); err != nil || has || d.env["PGPASSWORD"] == "" {
		t.Errorf("%s: want the password in PGPASSWORD, and none in --store %s", d.name, d.flag("store"))
	}
}

// composed reads deploy/compose.yaml.
func composed(t *testing.T) (text string, file composeFile, servers []*deployed) {
	t.Helper()
	data, err := os.ReadFile("../deploy/compose.yaml")
	must(t, err)
	decode(t, data, &file)
	for _, name := range slices.Sorted(maps.Keys(file.Services)) {
		s := file.Services[name]
		if !strings.Contains(s.Image, "roost") {
			continue
		}
		d := &deployed{name: name, args: s.Command, env: s.Environment}
		for _, v := range s.Volumes {
			d.paths = append(d.paths, strings.Split(v, ":")[1])
		}
		servers = append(servers, d)
	}
	return string(data), file, servers
}

func TestComposeFileFits(t *testing.T) {
	t.Parallel()
	text, file, servers := composed(t)
	image, user := released(t)
	if len(servers) != 3 {
		t.Fatalf("got %d servers, want 3", len(servers))
	}
	roots := map[string]bool{}
	for _, d := range servers {
		s := file.Services[d.name]
		stop, err := time.ParseDuration(s.StopTime)
		must(t, err)
		d.fits(t, stop, 0)
		roots[d.env["ROOST_ROOT"]] = true
		if name, tag, _ := strings.Cut(s.Image, ":"); name != image || !strings.HasPrefix(tag, "${ROOST_VERSION:?") {
			t.Errorf("%s: got the image %s, want %s:${ROOST_VERSION:?...}", d.name, s.Image, image)
		}
		if want := fmt.Sprintf("%d:%d", user, user); s.User != want {
			t.Errorf("%s: got the user %s, want %s", d.name, s.User, want)
		}
		_, port, err := net.SplitHostPort(d.flag("listen"))
		must(t, err)
		if len(s.Ports) != 1 || !strings.HasSuffix(s.Ports[0], ":"+port) {
			t.Errorf("%s: got the ports %q, want one that leads to %s", d.name, s.Ports, port)
		}
		if want := "https://" + d.name + ":" + port; d.flag("peer-url") != want {
			t.Errorf("%s: got --peer-url %s, want %s", d.name, d.flag("peer-url"), want)
		}
		store, err := url.Parse(d.flag("store"))
		must(t, err)
		db, ok := file.Services[store.Hostname()]
		if !ok || db.Environment["POSTGRES_USER"] != store.User.Username() || "/"+db.Environment["POSTGRES_DB"] != store.Path {
			t.Errorf("%s: --store is %s, and the service of that name makes %q", d.name, store, db.Environment)
		}
		if s.DependsOn[store.Hostname()].Condition != "service_healthy" || len(db.Health.Test) == 0 {
			t.Errorf("%s does not wait until the database is healthy", d.name)
		}
		if !slices.Equal(s.Volumes, file.Services["a"].Volumes) || d.flag("store-key") != servers[0].flag("store-key") {
			t.Errorf("%s has other volumes, or another key, than server a", d.name)
		}
		for _, v := range append(slices.Clone(s.Volumes), db.Volumes...) {
			if name, _, _ := strings.Cut(v, ":"); !strings.HasPrefix(name, ".") {
				if _, ok := file.Volumes[name]; !ok {
					t.Errorf("the volume %s is not declared", name)
				}
			}
		}
		if test := s.Health.Test; len(test) < 3 || test[0] != "CMD" || test[1] != "roost" {
			t.Errorf("%s: got the health check %q, want a command of roost", d.name, test)
		} else {
			parsed(t, test[2:])
		}
	}
	if len(roots) != len(servers) {
		t.Errorf("got the roots %v, want one for each server", slices.Collect(maps.Keys(roots)))
	}
	for _, found := range regexp.MustCompile(`\$\{(\w+)`).FindAllStringSubmatch(text, -1) {
		if !strings.Contains(notes(text), found[1]+"=") {
			t.Errorf("nothing at the top of the file sets %s", found[1])
		}
	}
	commandsOfNotes(t, notes(text))
}

// commandsOfNotes parses each command of roost in the words at the top of a file.
func commandsOfNotes(t *testing.T, text string) {
	t.Helper()
	for _, found := range regexp.MustCompile(`(?m)(?:^|[ =])roost ((?:serve|team|list|auth) [^)#\n]*)`).FindAllStringSubmatch(text, -1) {
		parsed(t, strings.Fields(found[1]))
	}
}

// manifests reads deploy/kubernetes.yaml.
func manifests(t *testing.T) (text string, set statefulSet, claims []claim, services []networkService, budgets []budget) {
	t.Helper()
	data, err := os.ReadFile("../deploy/kubernetes.yaml")
	must(t, err)
	for _, doc := range bytes.Split(data, []byte("\n---\n")) {
		var of struct{ Kind string }
		must(t, yaml.Unmarshal(doc, &of))
		switch of.Kind {
		case "StatefulSet":
			decode(t, doc, &set)
		case "PersistentVolumeClaim":
			claims = append(claims, claim{})
			decode(t, doc, &claims[len(claims)-1])
		case "Service":
			services = append(services, networkService{})
			decode(t, doc, &services[len(services)-1])
		case "PodDisruptionBudget":
			budgets = append(budgets, budget{})
			decode(t, doc, &budgets[len(budgets)-1])
		default:
			t.Errorf("got a manifest of the kind %q, which the test does not know", of.Kind)
		}
	}
	if len(set.Spec.Template.Spec.Containers) != 1 {
		t.Fatalf("got %d containers, want one", len(set.Spec.Template.Spec.Containers))
	}
	return string(data), set, claims, services, budgets
}

// server is a pod of the set, with its number.
func (c container) server(set string, n int) *deployed {
	d := &deployed{name: fmt.Sprintf("%s-%d", set, n), env: map[string]string{}}
	for _, e := range c.Env {
		value := e.Value
		switch {
		case e.From.Field.Path == "metadata.name":
			value = d.name
		case e.From.Secret.Key == "database":
			value = "postgres://roost@db/roost"
		case e.From.Secret.Key != "":
			value = "secret"
		}
		d.env[e.Name] = value
	}
	for _, arg := range c.Args {
		d.args = append(d.args, regexp.MustCompile(`\$\((\w+)\)`).ReplaceAllStringFunc(arg, func(s string) string {
			if value, ok := d.env[s[2:len(s)-1]]; ok {
				return value
			}
			return s
		}))
	}
	for _, m := range c.Mounts {
		d.paths = append(d.paths, m.Path)
	}
	return d
}

func TestKubernetesFileFits(t *testing.T) {
	t.Parallel()
	text, set, claims, services, budgets := manifests(t)
	image, user := released(t)
	pod := set.Spec.Template.Spec
	c := pod.Containers[0]
	before := time.Duration(0)
	if wait := c.Lifecycle.PreStop.Exec.Command; len(wait) == 2 && wait[0] == "sleep" {
		n, err := strconv.Atoi(wait[1])
		must(t, err)
		before = time.Duration(n) * time.Second
	} else {
		t.Errorf("before the stop: got %q, want sleep and its seconds", wait)
	}
	d := c.server(set.Metadata.Name, 0)
	d.fits(t, time.Duration(pod.StopTime)*time.Second, before)
	if strings.Contains(strings.Join(d.args, " "), "$(") {
		t.Errorf("got %q: a variable of the arguments is not in env", d.args)
	}
	if c.Image != image+":VERSION" {
		t.Errorf("got the image %s, want %s:VERSION", c.Image, image)
	}
	if s := pod.Security; s.User != user || s.Group != user || s.FSGroup != user || !s.NonRoot {
		t.Errorf("got %+v, want the image's user %d", s, user)
	}
	if s := c.Security; s.Escalation || !s.ReadOnly || !slices.Equal(s.Capabilities.Drop, []string{"ALL"}) || pod.Token {
		t.Errorf("got %+v, and the service account's token mounted: %v, want no rights", s, pod.Token)
	}
	if set.Spec.Replicas != 3 || c.Resources.Requests["cpu"] == "" || c.Resources.Requests["memory"] == "" {
		t.Errorf("got %d servers that request %v, want 3 with cpu and memory", set.Spec.Replicas, c.Resources.Requests)
	}
	// What is mounted is there, and what is there is mounted.
	var mounted, volumes []string
	for _, m := range c.Mounts {
		mounted = append(mounted, m.Name)
	}
	for _, v := range pod.Volumes {
		volumes = append(volumes, v.Name)
		if v.Claim.Name != "" && !slices.ContainsFunc(claims, func(c claim) bool { return c.Metadata.Name == v.Claim.Name }) {
			t.Errorf("there is no claim %s", v.Claim.Name)
		}
		if v.Secret.Name != "" && (v.Secret.Mode != 0o440 || !strings.Contains(text, "kubectl create secret generic "+v.Secret.Name+" ")) {
			t.Errorf("the secret %s: got the mode %#o, want 0440, and at the top of the file the command that makes it", v.Secret.Name, v.Secret.Mode)
		}
	}
	if slices.Sort(mounted); !slices.Equal(mounted, slices.Sorted(slices.Values(volumes))) {
		t.Errorf("got %q mounted, want %q", mounted, volumes)
	}
	for _, file := range []string{d.flag("store-key"), d.flag("tls-cert"), d.flag("tls-key")} {
		if !strings.Contains(notes(text), "--from-file="+filepath.Base(file)) {
			t.Errorf("nothing at the top of the file puts %s into a secret", filepath.Base(file))
		}
	}
	for _, e := range c.Env {
		if s := e.From.Secret; s.Key != "" && !strings.Contains(notes(text), "--from-literal="+s.Key+"=") {
			t.Errorf("nothing at the top of the file puts %s into a secret", s.Key)
		}
	}
	// Who sends to pods finds them.
	_, port, err := net.SplitHostPort(d.flag("listen"))
	must(t, err)
	if len(c.Ports) != 1 || strconv.Itoa(c.Ports[0].Port) != port {
		t.Fatalf("got the ports %+v, want %s", c.Ports, port)
	}
	labels := set.Spec.Template.Metadata.Labels
	selects := func(what string, by map[string]string) {
		for name, value := range by {
			if labels[name] != value || len(by) == 0 {
				t.Errorf("%s selects %q, want the labels of the pods, %q", what, by, labels)
			}
		}
	}
	selects("the set", set.Spec.Selector.Labels)
	peers := false
	for _, s := range services {
		selects("the service "+s.Metadata.Name, s.Spec.Selector)
		if len(s.Spec.Ports) != 1 || s.Spec.Ports[0].TargetPort != c.Ports[0].Name {
			t.Errorf("the service %s leads to %+v, want %s", s.Metadata.Name, s.Spec.Ports, c.Ports[0].Name)
		}
		if s.Metadata.Name == set.Spec.ServiceName {
			peers = true
			if want := "https://" + d.name + "." + s.Metadata.Name + ":" + port; d.flag("peer-url") != want || s.Spec.ClusterIP != "None" || !s.Spec.NotReady {
				t.Errorf("got --peer-url %s and %+v, want %s by a service without an address of its own", d.flag("peer-url"), s.Spec, want)
			}
		}
	}
	if !peers || len(services) != 2 || len(budgets) != 1 || budgets[0].Spec.MaxUnavailable != 1 {
		t.Errorf("got %d services and the budgets %+v, want one for clients, one for servers, and one budget of 1", len(services), budgets)
	}
	for _, b := range budgets {
		selects("the budget", b.Spec.Selector.Labels)
	}
	commandsOfNotes(t, notes(text))
}

// site is a machine on which the servers of both files run as processes: folders stand for what is mounted.
type site struct {
	*sandbox
	database string // host and port
}

// port is one without a listener.
func (s *site) port() string {
	s.t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(s.t, err)
	_, port, err := net.SplitHostPort(l.Addr().String())
	must(s.t, errors.Join(err, l.Close()))
	return port
}

// here is a path or an address of a container, on this machine.
func (s *site) here(d *deployed, port, word string) string {
	_, own, err := net.SplitHostPort(d.flag("listen"))
	must(s.t, err)
	word = strings.NewReplacer("@db/", "@"+s.database+"/", "0.0.0.0:"+own, "localhost:"+port, d.flag("peer-url"), "https://localhost:"+port).Replace(word)
	for _, mount := range d.paths {
		if at := strings.Index(word, mount); at == 0 || at > 0 && word[at-1] == '=' {
			return word[:at] + s.dir + word[at:]
		}
	}
	return word
}

// starts starts a server of a file, and returns a function for commands with the same environment.
func (s *site) starts(d *deployed, port string) (server *exec.Cmd, ended chan struct{}, with func(...string) *exec.Cmd) {
	s.t.Helper()
	env := []string{"HOME=" + filepath.Join(s.dir, "data")}
	for name, value := range d.env {
		env = append(env, name+"="+s.here(d, port, value))
	}
	with = func(args ...string) *exec.Cmd {
		cmd := s.command()
		for _, arg := range args {
			cmd.Args = append(cmd.Args, s.here(d, port, arg))
		}
		cmd.Env = append(cmd.Env, env...)
		cmd.Dir = filepath.Join(s.dir, "work")
		return cmd
	}
	log, err := os.Create(filepath.Join(s.dir, d.name+".log"))
	must(s.t, err)
	server, ended = with(d.args...), make(chan struct{})
	server.Stderr = log
	must(s.t, errors.Join(server.Start(), log.Close()))
	go func() { _ = server.Wait(); close(ended) }()
	s.t.Cleanup(func() {
		_ = server.Process.Kill()
		<-ended
		if words, err := os.ReadFile(log.Name()); err == nil && s.t.Failed() {
			s.t.Logf("%s:\n%s", d.name, words)
		}
	})
	return server, ended, with
}

// The servers of both files, started as they stand there but for their addresses and with folders of this machine, are
// healthy by the files' own checks, work on each other's tasks and end within the time that they get.
func TestDeployedServersStart(t *testing.T) {
	t.Parallel()
	s := &site{sandbox: newSandbox(t)}
	s.slow()
	cluster := pgtest.Start(t)
	s.database = fmt.Sprintf("127.0.0.1:%d", cluster.Port)
	conn, err := pgx.Connect(t.Context(), cluster.URL("postgres"))
	must(t, err)
	_, err = conn.Exec(t.Context(), `CREATE DATABASE roost`)
	must(t, errors.Join(err, conn.Close(t.Context())))
	text, file, servers := composed(t)
	for _, line := range strings.Split(notes(text), "\n") { // the certificate
		if strings.HasPrefix(line, "mkdir ") || strings.HasPrefix(line, "openssl ") {
			cmd := exec.CommandContext(t.Context(), "sh", "-c", line)
			cmd.Dir = s.dir
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("%s: %v\n%s", line, err, out)
			}
		}
	}
	for _, dir := range []string{"data", "work", "group"} {
		must(t, os.MkdirAll(filepath.Join(s.dir, dir), 0o700))
	}
	ports, ends := map[string]string{}, map[string]chan struct{}{}
	processes := map[string]*exec.Cmd{}
	check := map[string]func() *exec.Cmd{}
	for _, d := range servers { // all at once: one of them makes the key
		d.flag = flags(t, d.args)
		ports[d.name] = s.port()
		var with func(...string) *exec.Cmd
		processes[d.name], ends[d.name], with = s.starts(d, ports[d.name])
		check[d.name] = func() *exec.Cmd { return with(file.Services[d.name].Health.Test[2:]...) }
	}
	for _, d := range servers {
		s.within(time.Minute, "the health check of "+d.name+" succeeds", func() bool { return check[d.name]().Run() == nil })
	}
	s.works(servers, ports)

	// A pod joins: its key and certificate are those of the others, mounted as a secret is.
	_, set, _, _, _ := manifests(t)
	c := set.Spec.Template.Spec.Containers[0]
	pod := c.server(set.Metadata.Name, 0)
	pod.flag = flags(t, pod.args)
	for from, to := range map[string]string{
		servers[0].flag("store-key"): pod.flag("store-key"), servers[0].flag("tls-cert"): pod.flag("tls-cert"), servers[0].flag("tls-key"): pod.flag("tls-key"),
	} {
		data, err := os.ReadFile(filepath.Join(s.dir, from))
		must(t, errors.Join(err, os.WriteFile(filepath.Join(s.dir, to), data, 0o440)))
	}
	port := s.port()
	processes[pod.name], ends[pod.name], _ = s.starts(pod, port)
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}} //nolint:gosec // as a kubelet
	for name, p := range map[string]probe{"startup": c.Startup, "liveness": c.Liveness, "readiness": c.Readiness} {
		if p.Get.Port != c.Ports[0].Name || p.Get.Scheme != "HTTPS" {
			t.Errorf("the %s probe asks %s by %s, want %s by HTTPS", name, p.Get.Port, p.Get.Scheme, c.Ports[0].Name)
		}
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://localhost:"+port+p.Get.Path, nil)
		must(t, err)
		req.Host = "10.244.1.7:7878" // the pod's address, which the server does not know
		for _, h := range p.Get.Headers {
			if h.Name == "Host" {
				req.Host = h.Value
			}
		}
		var answer string
		s.within(time.Minute, "the pod answers", func() bool {
			resp, err := client.Do(req)
			if err != nil {
				return false
			}
			body, _ := io.ReadAll(resp.Body) // what is missing is seen below
			answer = resp.Status + " " + string(body)
			return resp.Body.Close() == nil
		})
		if !strings.HasPrefix(answer, "200 OK") || !strings.Contains(answer, `"status"`) {
			t.Errorf("the %s probe of %s: got %s, want 200", name, p.Get.Path, answer)
		}
	}
	stop, err := time.ParseDuration(file.Services["a"].StopTime)
	must(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), stop)
	defer cancel()
	for name, server := range processes {
		must(t, server.Process.Signal(syscall.SIGTERM))
		select {
		case <-ends[name]:
			if got := server.ProcessState.ExitCode(); got != failure.ExitTerminated {
				t.Errorf("%s ended with %d, want %d", name, got, failure.ExitTerminated)
			}
		case <-ctx.Done():
			t.Errorf("%s still works %v after SIGTERM", name, stop)
		}
	}
}

func flags(t *testing.T, args []string) func(string) string {
	t.Helper()
	_, flag := parsed(t, args)
	return flag
}

// works runs a task on the first server, and sends to it through the second one.
func (s *site) works(servers []*deployed, ports map[string]string) {
	s.t.Helper()
	token, err := os.ReadFile(filepath.Join(s.dir, servers[0].env["ROOST_ROOT"], "server", "token"))
	must(s.t, err)
	s.env("ROOST_TOKEN="+strings.TrimSpace(string(token)), "SSL_CERT_FILE="+filepath.Join(s.dir, "tls", "cert.pem"))
	g := &group{sandbox: s.sandbox}
	g.ws = filepath.Join(s.dir, "work", "project")
	must(s.t, os.MkdirAll(g.ws, 0o700))
	model, notes, on := g.command()
	at := func(n int) string { return "https://localhost:" + ports[servers[n].name] }
	r := g.roost("run", "--detach", "--json", "--approve", "all", "--provider", "script", "--model", model, "-C", g.ws, "--server", at(0), "paint the gate")
	var run api.Run
	if err := json.Unmarshal([]byte(r.out), &run); err != nil || r.code != 0 {
		s.t.Fatalf("exit %d, %v: %s%s", r.code, err, r.out, r.err)
	}
	g.begun(notes)
	if r := g.roost("send", run.Task, "also the fence", "--json", "--server", at(1)); r.code != 0 || !strings.Contains(r.out, `"queued"`) {
		s.t.Errorf("send through another server: got exit %d: %s%s, want it queued by the run", r.code, r.out, r.err)
	}
	must(s.t, os.WriteFile(on, nil, 0o600))
	if r := g.roost("wait", run.Task, "--server", at(2)); r.code != 0 {
		s.t.Errorf("wait by a third server: got exit %d: %s%s", r.code, r.out, r.err)
	}
}
