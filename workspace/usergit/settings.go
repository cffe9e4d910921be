package usergit

import (
	"regexp"
	"strings"
)

// server is a repository at a server, which runs nothing here.
var server = regexp.MustCompile(`^(https?|ssh|git)://[^-]|^[A-Za-z0-9_.]+@[A-Za-z0-9][A-Za-z0-9.-]*:[^:-]`)

// harmless are settings of a repository that name no program. A section's name with ".*"
// means all of its settings that have no subsection; "<>" stands for a subsection. A
// setting that is not here makes git ask.
var harmless = map[string]bool{}

func init() {
	for name := range strings.FieldsSeq(`core.repositoryformatversion core.filemode core.bare core.logallrefupdates core.ignorecase core.precomposeunicode
		core.symlinks core.autocrlf core.eol core.safecrlf core.quotepath core.abbrev core.compression core.untrackedcache core.preloadindex core.splitindex core.checkstat core.trustctime
		core.worktree core.sparsecheckout core.sparsecheckoutcone core.longpaths core.protectntfs core.protecthfs core.commitgraph core.multipackindex core.whitespace core.bigfilethreshold
		core.commentchar core.hookspath core.excludesfile core.fsmonitor core.warnambiguousrefs core.sharedrepository
		user.name user.email user.signingkey user.useconfigonly author.name author.email committer.name committer.email commit.gpgsign commit.verbose commit.cleanup tag.gpgsign tag.sort
		push.default push.autosetupremote push.followtags pull.rebase pull.ff fetch.prune fetch.prunetags fetch.output rebase.autosquash rebase.autostash rebase.updaterefs
		merge.ff merge.conflictstyle merge.renames merge.log merge.stat diff.renames diff.renamelimit diff.algorithm diff.colormoved diff.noprefix diff.mnemonicprefix diff.context diff.submodule diff.ignoresubmodules
		log.date log.decorate log.follow log.abbrevcommit log.showroot gc.auto gc.autodetach gc.pruneexpire gc.reflogexpire gc.reflogexpireunreachable gc.autopacklimit
		maintenance.auto maintenance.strategy extensions.worktreeconfig extensions.objectformat extensions.refstorage extensions.noop init.defaultbranch i18n.commitencoding i18n.logoutputencoding
		color.* status.* column.* advice.* pack.* index.* feature.* blame.* grep.* checkout.* rerere.* versionsort.* alias.* alias.<>.* submodule.active submodule.recurse submodule.fetchjobs
		branch.sort branch.autosetuprebase branch.autosetupmerge color.<>.* include.path includeif.<>.path lfs.repositoryformatversion lfs.<>.access lfs.<>.locksverify http.<>.extraheader github.user
		remote.<>.url remote.<>.pushurl remote.<>.fetch remote.<>.push remote.<>.prune remote.<>.prunetags remote.<>.tagopt remote.<>.gh-resolved remote.<>.skipfetchall remote.<>.skipdefaultupdate remote.<>.followremotehead
		remote.pushdefault branch.<>.* submodule.<>.url submodule.<>.active submodule.<>.branch submodule.<>.ignore submodule.<>.update submodule.<>.fetchrecursesubmodules submodule.<>.path`) {
		harmless[name] = true
	}
}

var (
	remoteName = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_-]*$|^\.$`)
	truth      = regexp.MustCompile(`^(?i)(true|false|yes|no|on|off|0|1|)$`)
)

// plain reports whether a setting names no program.
func plain(key, value string, set bool) bool {
	section, name, _ := strings.Cut(key, ".")
	if at := strings.LastIndex(name, "."); at >= 0 {
		section, name = section+".<>", name[at+1:]
	}
	if !harmless[section+"."+name] && !harmless[section+".*"] {
		return false
	}
	switch section + "." + name {
	case "core.fsmonitor":
		return !set || truth.MatchString(value)
	case "branch.<>.remote", "branch.<>.pushremote", "remote.pushdefault":
		return remoteName.MatchString(value)
	case "submodule.<>.update":
		return !strings.HasPrefix(value, "!")
	case "remote.<>.url", "remote.<>.pushurl", "submodule.<>.url":
		return !strings.Contains(value, "::") && !strings.HasPrefix(value, "-")
	}
	return true
}
