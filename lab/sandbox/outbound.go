package sandbox

import (
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"
)

// usualPorts are the ports that the sandbox always listens at, to write down calls to addresses that are not outbound.
func usualPorts() []string { return []string{"53", "80", "443"} }

// blockedCalls is the file of calls that lead nowhere.
type blockedCalls struct {
	mu   sync.Mutex
	file *os.File
}

func (s *blockedCalls) note(network, address string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	fmt.Fprintln(s.file, network, address)
}

// open listens at all addresses of the sandbox, and at the inbound sockets. Its goroutines end with the process.
func (s Spec) open() error {
	file, err := os.OpenFile(s.BlockedCalls, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("open the file of blocked calls: %w", err)
	}
	log := &blockedCalls{file: file}
	ports := map[string]bool{}
	for _, port := range usualPorts() {
		ports[port] = true
	}
	for address := range s.Outbound {
		_, port, err := net.SplitHostPort(address)
		if err != nil {
			return fmt.Errorf("read outbound address %q: %w", address, err)
		}
		ports[port] = true
	}
	for port := range ports {
		l, err := net.Listen("tcp4", ":"+port)
		if err != nil {
			return fmt.Errorf("listen in the sandbox: %w", err)
		}
		go accept(l, func(c net.Conn) { s.answer(c, log) })
	}
	names, err := net.ListenPacket("udp4", ":53")
	if err != nil {
		return fmt.Errorf("listen in the sandbox: %w", err)
	}
	go listenForNames(names, log)
	for socket, address := range s.Inbound {
		l, err := net.Listen("unix", socket)
		if err != nil {
			return fmt.Errorf("open an inbound socket: %w", err)
		}
		go accept(l, func(c net.Conn) { lead(c, "tcp", address) })
	}
	return nil
}

// answer forwards a call to the socket of its outbound address. It closes a call to any other address.
func (s Spec) answer(c net.Conn, log *blockedCalls) {
	address := c.LocalAddr().String()
	if socket, ok := s.Outbound[address]; ok {
		lead(c, "unix", socket)
		return
	}
	log.note("tcp", address)
	_ = c.Close()
}

// listenForNames notes questions for names, and answers none: so does the address of a Service that no pod is behind.
func listenForNames(l net.PacketConn, log *blockedCalls) {
	packet := make([]byte, 512)
	for {
		n, _, err := l.ReadFrom(packet)
		if err != nil {
			return
		}
		log.note("udp", "53 "+questionOf(packet[:n]))
	}
}

// questionOf is the name that a DNS packet asks for.
func questionOf(packet []byte) string {
	const header = 12
	var labels []string
	for at := header; at < len(packet) && packet[at] != 0; {
		end := at + 1 + int(packet[at])
		if end > len(packet) {
			break
		}
		labels = append(labels, string(packet[at+1:end]))
		at = end
	}
	return strings.Join(labels, ".")
}

func accept(l net.Listener, serve func(net.Conn)) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		go serve(c)
	}
}

// Forward leads every call at a listener to an address, until the listener is closed.
func Forward(l net.Listener, network, address string) {
	accept(l, func(c net.Conn) { lead(c, network, address) })
}

// lead carries bytes both ways until both sides have ended.
func lead(from net.Conn, network, address string) {
	defer from.Close()
	to, err := net.Dial(network, address)
	if err != nil {
		return // the caller sees a closed connection
	}
	defer to.Close()
	var both sync.WaitGroup
	for _, way := range [][2]net.Conn{{to, from}, {from, to}} {
		both.Go(func() {
			_, _ = io.Copy(way[0], way[1])
			if half, ok := way[0].(interface{ CloseWrite() error }); ok {
				_ = half.CloseWrite()
			}
		})
	}
	both.Wait()
}
