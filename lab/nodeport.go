package lab

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/joiner-sh/joiner/lab/kubelet"
	"github.com/joiner-sh/joiner/lab/pki"
)

// kubeletPort is the port at which kubelets answer.
const kubeletPort = "10250"

// nodePorts are the ports of the nodes, as the API server reaches them. Nobody here knows the addresses of machines or has a route there, so it
// dials through a proxy on a socket of this machine: any machine's port 10250 leads to the stand-in kubelets, and nothing else leads anywhere.
type nodePorts struct {
	socket string
	fleet  atomic.Pointer[kubelet.Fleet] // nil until there are kubelets
	dialed chan net.Conn                 // to kubelets
	done   chan struct{}
	once   sync.Once
	proxy  *http.Server
	ports  *http.Server
}

// openNodePorts begins to answer.
func openNodePorts(home string, authority *pki.Authority) (*nodePorts, error) {
	n := &nodePorts{socket: filepath.Join(home, "nodes"), dialed: make(chan net.Conn), done: make(chan struct{})}
	certificate, err := serverCertificate(authority, "kubelet")
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("unix", n.socket)
	if err != nil {
		return nil, fmt.Errorf("listen for those who call nodes: %w", err)
	}
	n.ports = &http.Server{
		ReadHeaderTimeout: 10 * time.Second,
		TLSConfig:         &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12},
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if f := n.fleet.Load(); f != nil {
				f.ServeHTTP(w, r)
				return
			}
			http.Error(w, "there are no kubelets yet", http.StatusServiceUnavailable)
		}),
	}
	n.proxy = &http.Server{Handler: http.HandlerFunc(n.connect), ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = n.ports.ServeTLS(n, "", "") }()
	go func() { _ = n.proxy.Serve(listener) }()
	return n, nil
}

// connect is the proxy: CONNECT of a kubelet's port, and nothing else.
func (n *nodePorts) connect(w http.ResponseWriter, r *http.Request) {
	_, port, err := net.SplitHostPort(r.Host)
	if r.Method != http.MethodConnect || err != nil || port != kubeletPort {
		http.Error(w, "no route to host "+r.Host, http.StatusBadGateway)
		return
	}
	c, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	if _, err := c.Write([]byte("HTTP/1.1 200 Connection established\r\n\r\n")); err != nil {
		_ = c.Close()
		return
	}
	select {
	case n.dialed <- c:
	case <-n.done:
		_ = c.Close()
	}
}

// Accept returns the next connection to a kubelet: nodePorts are the listener of the kubelets' server.
func (n *nodePorts) Accept() (net.Conn, error) {
	select {
	case c := <-n.dialed:
		return c, nil
	case <-n.done:
		return nil, net.ErrClosed
	}
}

// Close ends the kubelets' port.
func (n *nodePorts) Close() error {
	n.once.Do(func() { close(n.done) })
	return nil
}

// Addr is that of the socket.
func (n *nodePorts) Addr() net.Addr { return &net.UnixAddr{Name: n.socket, Net: "unix"} }

// shut ends all of it.
func (n *nodePorts) shut() error { return errors.Join(n.Close(), n.proxy.Close(), n.ports.Close()) }

// ShowLog has `kubectl logs` show what a process says that runs for a pod, by the name of its log.
func (l *Lab) ShowLog(namespace, pod, name string) { l.fleet.ShowLog(namespace, pod, l.Logs(name)) }
