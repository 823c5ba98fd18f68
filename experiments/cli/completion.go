package cli

import (
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// specFiles completes the name of a spec.
func specFiles(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return []string{"toml"}, cobra.ShellCompDirectiveFilterFileExt
}

// folders completes the name of a folder.
func folders(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return nil, cobra.ShellCompDirectiveFilterDirs
}

// completeFlag lets a shell complete the value of a flag, which the command has.
func completeFlag(c *cobra.Command, flag string, values cobra.CompletionFunc) {
	if err := c.RegisterFlagCompletionFunc(flag, values); err != nil {
		panic("cli: " + err.Error())
	}
}

// completeNumbers keeps a shell from offering files for flags of numbers and other checked values.
func completeNumbers(c *cobra.Command) {
	c.Flags().VisitAll(func(f *pflag.Flag) {
		if _, done := c.GetFlagCompletionFunc(f.Name); !done && f.Value.Type() != "string" {
			completeFlag(c, f.Name, cobra.NoFileCompletions)
		}
	})
}

var shells = []string{"bash", "zsh", "fish", "powershell"}

func newCompletion() *cobra.Command {
	return &cobra.Command{
		Use:   "completion " + strings.Join(shells, "|"),
		Short: "Print a shell's completion script",
		Example: `  source <(tokenrouter completion bash)
  tokenrouter completion zsh > "${fpath[1]}/_tokenrouter"
  tokenrouter completion fish > ~/.config/fish/completions/tokenrouter.fish`,
		ValidArgs: shells,
		Args:      exactly(1, "a shell: "+strings.Join(shells, ", ")),
		RunE: func(c *cobra.Command, args []string) error {
			root, out := c.Root(), c.OutOrStdout()
			switch args[0] {
			case "bash":
				return root.GenBashCompletionV2(out, true)
			case "zsh":
				return root.GenZshCompletion(out)
			case "fish":
				return root.GenFishCompletion(out, true)
			case "powershell":
				return root.GenPowerShellCompletionWithDesc(out)
			}
			return misuse("shell %q, want %s", args[0], strings.Join(shells, ", "))
		},
	}
}
