import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { isJsonObject, parseJson } from '../../engine/base/json.ts'
import { readState, writeState } from '../state-file.ts'
import { NEW_CHANNEL, type ChannelState, type SignedDeposit } from './channel.ts'

/** What is known of a channel, from its file. Throws when it cannot be read: a channel taken as new would deposit again. */
export function readChannel(file: string): ChannelState {
  const text = readState(file)
  if (text === undefined) return NEW_CHANNEL
  const state = parse(text)
  if (state === undefined) throw new Error(`the record of a channel in ${file} cannot be read`)
  return state
}

/** On disk before what it describes is sent. No key is in it. */
export function writeChannel(file: string, { pending, ...amounts }: ChannelState): void {
  const { charged, signed, balance, deposited } = amounts
  writeState(file, {
    charged: String(charged),
    signed: String(signed),
    balance: String(balance),
    deposited: String(deposited),
    ...(pending && {
      pending: { ...pending, amount: String(pending.amount), validBefore: String(pending.validBefore) },
    }),
  })
}

/** Every channel in a folder. */
export function listChannels(folder: string): readonly ChannelState[] {
  const names = readdirSync(folder).filter((name) => name.endsWith('.json'))
  return names.map((name) => readChannel(join(folder, name)))
}

function parse(text: string): ChannelState | undefined {
  const value = parseJson(text)
  if (!isJsonObject(value)) return undefined
  const [charged, signed, balance, deposited] = ['charged', 'signed', 'balance', 'deposited'].map((name) =>
    amountIn(value[name]),
  )
  if (charged === undefined || signed === undefined || balance === undefined || deposited === undefined)
    return undefined
  if (value['pending'] === undefined) return { charged, signed, balance, deposited }
  const pending = parseDeposit(value['pending'])
  return pending === undefined ? undefined : { charged, signed, balance, deposited, pending }
}

function parseDeposit(value: unknown): SignedDeposit | undefined {
  const { amount, validBefore, salt, signature } = isJsonObject(value) ? value : {}
  const [sum, until] = [amountIn(amount), amountIn(validBefore)]
  if (sum === undefined || until === undefined || !isHex(salt) || !isHex(signature)) return undefined
  return { amount: sum, validBefore: until, salt, signature }
}

/** An amount in atomic units, which anybody may have written. */
export function amountIn(value: unknown): bigint | undefined {
  return typeof value === 'string' && /^\d{1,39}$/.test(value) ? BigInt(value) : undefined
}

function isHex(value: unknown): value is `0x${string}` {
  return typeof value === 'string' && /^0x[0-9a-f]+$/i.test(value)
}
