// Package component runs one program of the control plane inside a copy of the lab's own binary.
//
// In: the arguments of the process.
// Out: the exit code of kube-apiserver, kube-controller-manager, kube-scheduler, process.Guard or a sandbox.
// Never: two programs in one process, because logging and signals can be set up only once.
package component

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"k8s.io/component-base/cli"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllers "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"

	"github.com/joiner-sh/joiner/lab/process"
	"github.com/joiner-sh/joiner/lab/sandbox"
)

// Run runs the program that args[0] names and returns its exit code. It returns false if args[0] names no program; the
// caller then runs the lab command.
func Run(args []string) (code int, ok bool) {
	if len(args) == 0 {
		return 0, false
	}
	var program func() *cobra.Command
	switch args[0] {
	case "kube-apiserver":
		program = apiserver.NewAPIServerCommand
	case "kube-controller-manager":
		program = controllers.NewControllerManagerCommand
	case "kube-scheduler":
		program = func() *cobra.Command { return scheduler.NewSchedulerCommand() }
	case process.GuardArg:
		if len(args) != 2 {
			return 0, false // the lab did not start this process
		}
		process.Guard(args[1], os.Stdin)
		return 0, true
	case sandbox.Arg:
		if len(args) != 2 {
			return 0, false
		}
		return sandbox.Main(args[1]), true
	default:
		return 0, false
	}
	if err := setVersion(); err != nil {
		fmt.Fprintln(os.Stderr, "set version:", err)
		return 1, true
	}
	cmd := program()
	cmd.SetArgs(args[1:])
	return cli.Run(cmd), true
}
