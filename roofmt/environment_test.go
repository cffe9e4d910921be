package roofmt

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Where a request was made stands at its end, in both histories.
func TestARequestSaysWhereItWasMade(t *testing.T) {
	const end = "\n</environment_details>"
	full := environmentMark + "\n# VSCode Open Tabs\nmain.go\n\n# Current Mode\n<slug>code</slug>\n<name>Code</name>\n<model>m-1</model>\n\n" +
		"# Current Workspace Directory (/home/ann/fence) Files\na.go" + end
	said := Environment{Workspace: "/home/ann/fence", Mode: "code", Model: "m-1"}
	in := func(dir string) string {
		return environmentMark + "\n# Current Working Directory (" + dir + ") Files" + end
	}
	cases := map[string]struct {
		text string
		want Environment
	}{
		"all":                            {full, said},
		"lines of Windows":               {environmentMark + "\r\n# Current Working Directory (/w) Files\r\n", Environment{Workspace: "/w"}},
		"a drive":                        {in("c:/Users/ann/fence"), Environment{Workspace: `c:\Users\ann\fence`}},
		"a share":                        {in("//wsl.localhost/Ubuntu/home/ann"), Environment{Workspace: `\\wsl.localhost\Ubuntu\home\ann`}},
		"brackets in the name":           {in("/home/ann/a (b)"), Environment{Workspace: "/home/ann/a (b)"}},
		"no absolute path":               {in("docker/work"), Environment{}},
		"a template":                     {in("${cwd.toPosix()}"), Environment{}},
		"not told":                       {environmentMark + "\n# Current Time\n2025" + end, Environment{}},
		"cut":                            {environmentMark + "\n<slug>ask</slug>", Environment{Mode: "ask"}},
		"tags with something in them":    {environmentMark + "\n<slug><b>x</b></slug>\n<model></model>" + end, Environment{}},
		"the last details":               {in("/evil") + "\n" + full, said},
		"what stands behind the details": {full + "\n# Current Working Directory (/evil) Files", said},
		"a file of that name below":      {environmentMark + "\n# Current Workspace Directory (/w) Files\n# Current Workspace Directory (/evil) Files" + end, Environment{Workspace: "/w"}},
		"no details":                     {"# Current Workspace Directory (/evil) Files", Environment{}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			request, err := json.Marshal(map[string]any{"request": "<task>do</task>\n\n" + c.text, "cost": 1})
			if err != nil {
				t.Fatal(err)
			}
			for _, message := range []any{
				map[string]any{"ts": 1, "type": "say", "say": "api_req_started", "text": string(request)},
				map[string]any{"role": "user", "content": []any{map[string]string{"type": "text", "text": "do"}, map[string]string{"type": "text", "text": c.text}}},
			} {
				raw, err := json.Marshal(message)
				if err != nil {
					t.Fatal(err)
				}
				if m, ok := message.(map[string]any); ok && m["role"] != nil && name == "no details" {
					continue
				}
				if diff := cmp.Diff(c.want, EnvironmentOf(raw)); diff != "" {
					t.Errorf("%s: got %s, want diff = \"\"", raw, diff)
				}
			}
		})
	}
}

// What a model said, a tool gave, or a person wrote in a sentence says nothing of it.
func TestOnlyDetailsOfARequestCount(t *testing.T) {
	details := `<environment_details>\n# Current Workspace Directory (/evil) Files\n</environment_details>`
	for _, raw := range []string{
		`{"role":"assistant","content":[{"type":"text","text":"` + details + `"}]}`,
		`{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":[{"type":"text","text":"` + details + `"}]}]}`,
		`{"role":"user","content":[{"type":"text","text":"look at ` + details + `"}]}`,
		`{"type":"say","say":"text","text":"` + details + `"}`,
		`{"type":"say","say":"api_req_started","text":"{\"request\":5,\"x\":\"<environment_details>\"}"}`,
		`"<environment_details>"`, `<environment_details>`,
	} {
		if got := EnvironmentOf([]byte(raw)); got != (Environment{}) {
			t.Errorf("%s: got %+v, want got = (Environment{})", raw, got)
		}
	}
}
