#!/usr/bin/env node
import cluster from 'node:cluster'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { COMMANDS } from './cli/commands.ts'
import { runCommand } from './cli/run.ts'
import { loadService, takeServiceFlag } from './cli/load-service.ts'
import { openTerminal } from './command-line/process-terminal.ts'
import { readEnv } from './env.ts'
import { readEnvFile } from './env/env-file.ts'

const ROOT = fileURLToPath(new URL('..', import.meta.url))

const version = readVersion()
const { argv, directory } = takeServiceFlag(process.argv.slice(2))

function readVersion(): string {
  const { version } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'))
  return String(version)
}

process.exitCode = await runCommand({
  commands: COMMANDS,
  argv,
  env: (service) => readEnv({ ...readEnvFile('.env'), ...process.env }, service),
  terminal: openTerminal(process),
  loadService: () => loadService(directory, process.cwd(), ROOT),
  version,
})

// What handlers have left open must not keep a process that another one replaces. The exit waits until its messages are
// sent: the files to watch are among them.
if (cluster.isWorker && process.connected)
  process.send?.({ kind: 'over' }, undefined, undefined, () => process.exit())
else if (cluster.isWorker) process.exit()
