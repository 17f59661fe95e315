// Command manual writes the manual pages of dragoman, a page for each command, from its help.
package main
