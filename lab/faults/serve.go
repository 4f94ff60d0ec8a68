package faults

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/joiner-sh/joiner/internal/emulator/world/ekscluster"
	"github.com/joiner-sh/joiner/lab"
)

// socketName is the file name, in the lab's folder, of the socket for the commands of `lab fault`.
const socketName = "faults.sock"

const requestTimeout = 2 * time.Minute

type faultServer struct {
	mu         sync.Mutex
	stage      *Stage
	scenes     map[string]*Scene // scenes of the injected faults, by name of the fault
	sceneCount int               // number of scenes so far
}

// Serve accepts the commands of `lab fault` until the context ends. It listens in the lab's folder, to which only the
// lab's user has access.
func Serve(ctx context.Context, l *lab.Lab) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "unix", filepath.Join(l.Home, socketName))
	if err != nil {
		return fmt.Errorf("listen for faults: %w", err)
	}
	s := &faultServer{stage: &Stage{Lab: l}, scenes: map[string]*Scene{}}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /{name}", s.handle(s.inject))
	mux.HandleFunc("DELETE /{name}", s.handle(s.undo))
	server := &http.Server{Handler: mux, ReadHeaderTimeout: time.Second}
	context.AfterFunc(ctx, func() { _ = server.Close() })
	go func() { _ = server.Serve(listener) }()
	return nil
}

// handle returns an HTTP handler that calls do with the name of the fault, one request at a time. A request continues
// after its client has disconnected.
func (s *faultServer) handle(do func(context.Context, string) (string, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		defer s.mu.Unlock()
		ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), requestTimeout)
		defer cancel()
		text, err := do(ctx, r.PathValue("name"))
		if err != nil {
			w.WriteHeader(http.StatusConflict)
			text = err.Error()
		}
		_, _ = io.WriteString(w, text)
	}
}

// inject injects a fault. The result is the text for the user.
func (s *faultServer) inject(ctx context.Context, name string) (string, error) {
	f, err := Find(name)
	if err != nil {
		return "", err
	}
	if s.scenes[name] != nil {
		return "", fmt.Errorf("the fault %s is already injected; undo it with `lab fault --undo %s`", name, name)
	}
	stage, err := NewStage(ctx, s.stage.Lab, "")
	if err != nil {
		return "", err
	}
	s.sceneCount++ // AWS resources can remain from earlier scenes, so each scene needs a new name
	scene := NewScene(s.stage.Lab, sceneName(s.sceneCount))
	modeBefore, err := stage.keepMode(scene)
	if err != nil {
		return "", err
	}
	// Create pods, so that users see pending pods.
	f.NeedsPods = true
	if err := stage.Setup(ctx, scene, f, true); err != nil {
		return "", errors.Join(err, scene.revert(ctx), scene.remove(ctx))
	}
	s.scenes[name] = scene
	return injectedText(f, scene.Name, modeBefore, stage.mode), nil
}

// injectedText describes an injected fault and how to diagnose it. name is the name of the scene. before and now are
// the authentication modes before the fault and with the fault; the text contains them if they differ.
func injectedText(f Fault, name, before, now string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s. Created EC2NodeClass, NodePool and Deployment %s.\n", capital(f.What), name)
	if now != before {
		fmt.Fprintf(&b, "The cluster's authentication mode is %s until the fault is undone; before, the mode was %s.\n", now, before)
	}
	b.WriteString("To find the cause: joiner doctor")
	switch {
	case f.Wait > 0:
		fmt.Fprintf(&b, ", at least %.0f seconds after the node has joined", f.Wait.Seconds())
	case f.Slow:
		fmt.Fprintf(&b, ", which finds the cause after up to %.0f minutes", Limit.Minutes())
	}
	fmt.Fprintf(&b, "\nTo undo the fault: lab fault --undo %s\n", f.Name)
	return b.String()
}

// undo reverts a fault and deletes its objects. The result is the text for the user.
func (s *faultServer) undo(ctx context.Context, name string) (string, error) {
	scene := s.scenes[name]
	if scene == nil {
		return "", fmt.Errorf("the fault %q is not injected in this lab", name)
	}
	if err := errors.Join(scene.revert(ctx), scene.remove(ctx)); err != nil {
		return "", err
	}
	// The controller needs the role until the instances and the controller's instance profile are deleted.
	if err := scene.waitGone(ctx); err != nil {
		return "", fmt.Errorf("the objects %s are still being deleted; to delete the roles and access entries of the fault, run `lab fault --undo %s` again: %w", scene.Name, name, err)
	}
	if err := scene.deleteAWSResources(ctx); err != nil {
		return "", err
	}
	delete(s.scenes, name)
	return "The fault " + name + " is undone: its objects, instances, roles and access entries are deleted.\n", nil
}

// keepMode returns the cluster's authentication mode, and adds an undo function that restores the mode.
func (s *Stage) keepMode(scene *Scene) (mode string, err error) {
	err = scene.ChangeCluster(func(c *ekscluster.Cluster) {
		mode = c.AuthMode
		scene.AddUndo(func(context.Context) error {
			return scene.ChangeCluster(func(c *ekscluster.Cluster) { c.AuthMode = mode })
		})
	})
	return mode, err
}

// Request asks the lab in the folder home to inject or undo a fault, and returns the text for the user.
func Request(ctx context.Context, home, name string, undo bool) (string, error) {
	client := &http.Client{
		Timeout: requestTimeout,
		Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", filepath.Join(home, socketName))
		}}}
	method := http.MethodPost
	if undo {
		method = http.MethodDelete
	}
	r, err := http.NewRequestWithContext(ctx, method, "http://lab/"+name, nil)
	if err != nil {
		return "", fmt.Errorf("send the request to the lab: %w", err)
	}
	response, err := client.Do(r)
	if err != nil {
		return "", fmt.Errorf("send the request to the lab in %s: %w", home, err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, 1<<20))
	switch {
	case err != nil:
		return "", fmt.Errorf("read the response of the lab: %w", err)
	case response.StatusCode != http.StatusOK:
		return "", errors.New(strings.TrimSpace(string(text)))
	}
	return string(text), nil
}

func capital(text string) string {
	if text == "" {
		return text
	}
	return strings.ToUpper(text[:1]) + text[1:]
}
