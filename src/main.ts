#!/usr/bin/env node
import { randomBytes } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { check } from './cli/check.ts'
import type { Command, Shop } from './cli/command.ts'
import { pay } from './cli/pay.ts'
import { exportPayments } from './cli/payments/export.ts'
import { listPayments } from './cli/payments/list.ts'
import { reconcilePayments } from './cli/payments/reconcile.ts'
import { showPayment } from './cli/payments/show.ts'
import { print } from './cli/print.ts'
import { routes } from './cli/routes.ts'
import { runCommand } from './cli/run.ts'
import { serve } from './cli/serve.ts'
import { types } from './cli/types.ts'
import { doctor } from './cli/doctor.ts'
import { documentNames } from './engine/index.ts'
import { readEnv } from './env.ts'
import { createHandlers } from './service/service.ts'
import { SourceRecords } from './service/sources/source-record.ts'

const commands: readonly Command[] = [
  serve,
  check,
  routes,
  print,
  types,
  pay,
  listPayments,
  showPayment,
  reconcilePayments,
  exportPayments,
  doctor,
]

const env = () => readEnv(process.env)

const world = {
  fetch,
  now: () => new Date(),
  sleep: async (ms: number, signal: AbortSignal) => {
    await delay(ms, undefined, { signal })
  },
  random: () => randomBytes(4).readUInt32BE() / 2 ** 32,
}

/** One for all handlers this process ever makes: a reload of the catalog does not forget what the sources did. */
const records = new SourceRecords(world.now)

const shop: Shop = {
  handlers: (standIns) => {
    if (standIns === undefined) {
      const { sources, twitch } = env()
      return createHandlers({ world, records, ...sources, twitch, standIn: false })
    }
    return createHandlers({
      world,
      records,
      steamStore: `${standIns}/steam-store`,
      steamApi: `${standIns}/steam-api`,
      steamSpy: `${standIns}/steamspy`,
      twitchApi: `${standIns}/twitch-api`,
      twitchId: `${standIns}/twitch-id`,
      igdb: `${standIns}/igdb`,
      twitch: undefined,
      standIn: true,
    })
  },
  figures: () => records.figures(),
  startStandIns: async () => {
    const { startStandIns } = await import('./sandbox/sources/stand-ins.ts')
    return startStandIns()
  },
  openSandbox: async (directory, baseUrl, log) => {
    const { openSandbox } = await import('./sandbox/sandbox.ts')
    return openSandbox({
      directory,
      baseUrl,
      now: () => new Date(),
      random: (bytes) => randomBytes(bytes),
      log,
    })
  },
  playAddresses: async (directory) => {
    const { developmentAddresses, readSandboxAddresses } = await import('./sandbox/known-keys.ts')
    return new Set([...developmentAddresses, ...readSandboxAddresses(directory)])
  },
}

process.stdout.on('error', (fault: NodeJS.ErrnoException) => {
  // The reader has had enough, as `head` does: no mistake of ours.
  if (fault.code !== 'EPIPE') throw fault
  process.exit(0)
})

process.exitCode = await runCommand({
  commands,
  argv: process.argv.slice(2),
  env,
  terminal: {
    out: (line) => process.stdout.write(`${line}\n`),
    err: (line) => process.stderr.write(`${line}\n`),
    reader: process.stdout.isTTY ? 'person' : 'program',
    // Back to the start of the line, and the rest of it erased.
    progress: (line) => process.stderr.isTTY && process.stderr.write(`\r${line}\u001b[K`),
  },
  shop,
  known: () => ({ handlers: Object.keys(shop.handlers(undefined)), documents: documentNames }),
})
