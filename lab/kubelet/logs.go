package kubelet

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
)

const followInterval = 200 * time.Millisecond

// SetLogFile sets the log file of a pod for which a process runs in the lab. The file is the log of all containers of
// the pod. Pods without a log file have an empty log.
func (f *Fleet) SetLogFile(namespace, name, path string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.logs == nil {
		f.logs = map[string]string{}
	}
	f.logs[namespace+"/"+name] = path
}

// logOf returns the path of a pod's log file, or "" if none is set.
func (f *Fleet) logOf(namespace, name string) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.logs[namespace+"/"+name]
}

// ServeHTTP answers the API server's requests to the kubelets' port, for every node:
// /containerLogs/NAMESPACE/POD/CONTAINER. Other paths are not found. The host in a request is the node's name.
func (f *Fleet) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	if len(parts) != 4 || parts[0] != "containerLogs" {
		http.NotFound(w, r)
		return
	}
	node, _, err := net.SplitHostPort(r.Host)
	if err != nil {
		node = r.Host
	}
	namespace, name, container := parts[1], parts[2], parts[3]
	status, err := f.checkReadable(node, namespace, name, container)
	if err != nil {
		http.Error(w, err.Error(), status)
		return
	}
	w.Header().Set("Content-Type", "text/plain")
	path := f.logOf(namespace, name)
	if path == "" {
		return
	}
	file, err := os.Open(path)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	defer file.Close()
	writeLog(w, r, file)
}

// checkReadable checks whether the node has a log of the container. If it has none, checkReadable returns the HTTP
// status code of the response and an error in the wording of the kubelet.
func (f *Fleet) checkReadable(node, namespace, name, container string) (status int, err error) {
	object, ok, err := f.pods.GetByKey(namespace + "/" + name)
	if err != nil {
		return http.StatusInternalServerError, err
	}
	if !ok || f.node(node) == nil || object.(*corev1.Pod).Spec.NodeName != node {
		return http.StatusNotFound, fmt.Errorf("pod %q does not exist", name)
	}
	pod := object.(*corev1.Pod)
	if !slices.ContainsFunc(pod.Spec.Containers, func(c corev1.Container) bool { return c.Name == container }) {
		return http.StatusNotFound, fmt.Errorf("container %q not found in pod %q", container, name)
	}
	if pod.Status.Phase == corev1.PodPending {
		return http.StatusBadRequest, fmt.Errorf("container %q in pod %q is waiting to start", container, name)
	}
	return http.StatusOK, nil
}

// writeLog writes the part of a log that the request's parameters tailLines and limitBytes select. With the parameter
// follow, it also writes new text, until the client disconnects.
func writeLog(w http.ResponseWriter, r *http.Request, file io.Reader) {
	query := r.URL.Query()
	text, err := io.ReadAll(file)
	if err != nil {
		return // the response is truncated
	}
	if n, err := strconv.Atoi(query.Get("tailLines")); err == nil {
		text = lastLines(text, n)
	}
	if n, err := strconv.Atoi(query.Get("limitBytes")); err == nil && n < len(text) {
		text = text[:n]
	}
	if _, err := w.Write(text); err != nil || query.Get("follow") != "true" {
		return
	}
	poll := time.NewTicker(followInterval)
	defer poll.Stop()
	for {
		if flusher, ok := w.(http.Flusher); ok {
			flusher.Flush()
		}
		select {
		case <-r.Context().Done():
			return
		case <-poll.C:
			if _, err := io.Copy(w, file); err != nil {
				return
			}
		}
	}
}

func lastLines(text []byte, n int) []byte {
	end := len(bytes.TrimSuffix(text, []byte("\n")))
	newline := end // index of the newline before the result
	for ; n > 0 && newline >= 0; n-- {
		newline = bytes.LastIndexByte(text[:newline], '\n')
	}
	switch {
	case newline < 0: // the text has at most n lines
		return text
	case newline == end: // n <= 0
		return nil
	}
	return text[newline+1:]
}
