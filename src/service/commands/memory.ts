import { existsSync } from 'node:fs'
import type { ServiceCall } from 'ratecard/service'
import { isAddress } from 'ratecard/handler'
import { chooseEmbedder } from '../memory/choose-embedder.ts'
import { wayOf } from '../memory/embedder.ts'
import { StoreRefusal } from '../memory/database.ts'
import { requestForget } from '../memory/forget-requests.ts'
import { Memories, type Place } from '../memory/memories.ts'
import { findSentenceModel } from '../sentences/sentence-model.ts'
import type { Settings } from '../settings.ts'
import { placeOfMemories, runtimeOf } from '../shop.ts'
import { MetricsBySource } from '../sources/source-metrics.ts'

type Call = ServiceCall<Settings>

/**
 * Location of the memories of a server with this environment. Throws when there are none: a mistyped directory must
 * not count as empty.
 */
function placeOf({ flags, context }: Call): Place {
  const payments = flags.given('sandbox') ? 'sandbox' : 'real'
  const dataDir = flags.text('data-dir') ?? context.dataDir
  const place = placeOfMemories(context.settings, { dataDir, payments })
  if (place.kind === 'embedded' && !existsSync(place.directory))
    throw new Error(
      `there are no memories in ${place.directory}; name the server's directory with --data-dir`,
    )
  return place
}

interface OpenMemories {
  readonly memories: Memories
  /** For the operator: the store, and how texts are found. */
  readonly title: string
}

async function open({ context }: Call, place: Place): Promise<OpenMemories> {
  const runtime = runtimeOf(context)
  const embedder = chooseEmbedder(
    context.settings.model,
    findSentenceModel(),
    runtime,
    new MetricsBySource(runtime.now),
  )
  const memories = new Memories()
  const title = await memories.open(place, embedder)
  return { memories, title: `${title}, texts are found by ${wayOf(embedder)} (${embedder.name})` }
}

export async function exportMemories(call: Call): Promise<number> {
  const wallet = call.flags.text('wallet')
  if (wallet !== undefined && !isAddress(wallet)) throw call.misuse('--wallet takes an address, 0x…')
  const { memories } = await open(call, placeOf(call))
  try {
    const upkeep = await memories.upkeep()
    for await (const record of upkeep.records(wallet)) call.terminal.out(JSON.stringify(record))
    return 0
  } finally {
    await memories.close()
  }
}

/** What a person may ask an operator for; it cannot be undone. */
export async function forgetWallet(call: Call): Promise<number> {
  const wallet = call.flags.text('wallet')
  if (wallet === undefined || !isAddress(wallet)) throw call.misuse('--wallet takes an address, 0x…')
  const forgotten = await forget(call, placeOf(call), wallet)
  call.terminal.out(`forgot ${forgotten} memories of ${wallet}`)
  return 0
}

/** Embedded files belong to one process: when a server has them open, it is asked to do it. */
async function forget(call: Call, place: Place, wallet: string): Promise<number> {
  const opened = await open(call, place).catch((fault: unknown) => {
    if (place.kind === 'embedded' && fault instanceof StoreRefusal) return undefined
    throw fault
  })
  if (opened === undefined) return place.kind === 'embedded' ? requestForget(place.directory, wallet) : 0
  const { memories } = opened
  try {
    return await (await memories.upkeep()).forget(wallet)
  } finally {
    await memories.close()
  }
}

export async function reindexMemories(call: Call): Promise<number> {
  const { terminal } = call
  const { memories, title } = await open(call, placeOf(call))
  try {
    const upkeep = await memories.upkeep()
    const done = await upkeep.reindex((number) => terminal.progress(`${number} memories`))
    terminal.progress('')
    terminal.out(`reindexed ${done} memories: ${title}`)
    return 0
  } finally {
    await memories.close()
  }
}
