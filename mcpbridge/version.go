package mcpbridge

import "runtime/debug"

// Version is the version of taskbridge that this program was built with: a module version, else the commit, else "dev".
func Version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "dev"
	}
	if version := info.Main.Version; info.Main.Path == "taskbridge" && version != "" && version != "(devel)" {
		return version
	}
	for _, dependency := range info.Deps {
		if dependency.Path == "taskbridge" {
			return dependency.Version
		}
	}
	for _, setting := range info.Settings {
		if setting.Key == "vcs.revision" {
			return setting.Value[:min(12, len(setting.Value))]
		}
	}
	return "dev"
}
