// Package console is the web page on which people watch and steer the hub.
//
// [New] returns an http.Handler for the page at / and its files below /console/. It opens no
// socket and reads nothing of the hub: the page calls the REST interface like any other client,
// with the credential of the person who looks at it. The files are plain ES modules, a style
// sheet and one document; what is in the repository is what browsers run.
package console
