#!/usr/bin/env node
import cluster from 'node:cluster'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { COMMANDS } from './cli/commands.ts'
import { runCommand } from './cli/run.ts'
import { loadService, takeServiceFlag } from './cli/service.ts'
import { readEnv, readEnvFile } from './env.ts'

const ROOT = fileURLToPath(new URL('..', import.meta.url))

const version = readVersion()
const { argv, directory } = takeServiceFlag(process.argv.slice(2))

function readVersion(): string {
  const { version } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'))
  return String(version)
}

process.stdout.on('error', (fault: NodeJS.ErrnoException) => {
  // The reader has had enough, as `head` does: no mistake of ours.
  if (fault.code !== 'EPIPE') throw fault
  process.exit(0)
})

process.exitCode = await runCommand({
  commands: COMMANDS,
  argv,
  env: (service) => readEnv({ ...readEnvFile('.env'), ...process.env }, service),
  terminal: {
    out: (line) => process.stdout.write(`${line}\n`),
    err: (line) => process.stderr.write(`${line}\n`),
    reader: process.stdout.isTTY ? 'person' : 'program',
    logReader: process.stderr.isTTY ? 'person' : 'program',
    // Back to the start of the line, and the rest of it erased.
    progress: (line) => process.stderr.isTTY && process.stderr.write(`\r${line}\u001b[K`),
  },
  loadService: () => loadService(directory, process.cwd(), ROOT),
  version,
})

// What handlers have left open must not keep a process that another one replaces. The exit waits until its messages are
// sent: the files to watch are among them.
if (cluster.isWorker && process.connected)
  process.send?.({ kind: 'over' }, undefined, undefined, () => process.exit())
else if (cluster.isWorker) process.exit()
