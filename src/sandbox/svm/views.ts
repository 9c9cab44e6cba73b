import type { EncodedAccount } from '@solana/kit'
import { encodeBase58 } from '../../engine/base/base58.ts'
import type { Json, JsonObject } from '../../engine/base/json.ts'
import { TOKEN_PROGRAM } from '../../engine/base/svm-programs.ts'
import type { Landed, TokenBalance } from './bank.ts'
import { slotOf } from './blocks.ts'
import { invalidParams } from './rpc-error.ts'
import { readMint, readTokenAccount } from './tokens.ts'
import type { SentTransaction } from './transaction.ts'

/** What the decimals of a mint are. */
export type DecimalsOf = (mint: string) => number

const FOREVER = Number(18_446_744_073_709_551_615n)
const STATES = ['uninitialized', 'initialized', 'frozen']

/** An account as `getAccountInfo` shows it. */
export function accountView(account: EncodedAccount, encoding: Json, decimalsOf: DecimalsOf): JsonObject {
  const { data, executable, lamports, programAddress } = account
  return {
    data: dataView(account, encoding, decimalsOf),
    executable,
    lamports: Number(lamports),
    owner: programAddress,
    rentEpoch: FOREVER,
    space: data.length,
  }
}

function dataView(account: EncodedAccount, encoding: Json, decimalsOf: DecimalsOf): Json {
  const bytes = Uint8Array.from(account.data)
  const base64 = [Buffer.from(bytes).toString('base64'), 'base64']
  switch (encoding) {
    case 'jsonParsed':
      return parsedView(account, decimalsOf) ?? base64
    case 'base64':
      return base64
    case 'base58':
      return [encodeBase58(bytes), 'base58']
    default:
      throw invalidParams(`unknown encoding ${JSON.stringify(encoding)}.`)
  }
}

function parsedView(account: EncodedAccount, decimalsOf: DecimalsOf): Json | undefined {
  const parsed = (type: string, info: JsonObject): Json => ({
    program: 'spl-token',
    parsed: { info, type },
    space: account.data.length,
  })
  const held = readTokenAccount(account)
  if (held !== undefined) {
    const { mint, owner, amount, state } = held
    const tokenAmount = amountView(amount, decimalsOf(mint))
    return parsed('account', { isNative: false, mint, owner, state: STATES[state] ?? null, tokenAmount })
  }
  const mint = readMint(account)
  if (mint === undefined) return undefined
  const { decimals, isInitialized, supply } = mint
  return parsed('mint', {
    decimals,
    freezeAuthority: null,
    isInitialized,
    mintAuthority: null,
    supply: String(supply),
  })
}

export function amountView(amount: bigint, decimals: number): JsonObject {
  const digits = String(amount).padStart(decimals + 1, '0')
  const whole = digits.slice(0, digits.length - decimals)
  const text = `${whole}.${digits.slice(digits.length - decimals)}`.replace(/\.?0*$/, '')
  const uiAmountString = decimals === 0 ? String(amount) : text
  return { amount: String(amount), decimals, uiAmount: Number(uiAmountString), uiAmountString }
}

/** A transaction as `getTransaction` shows it. */
export function landedView(landed: Landed, encoding: Json, decimalsOf: DecimalsOf): JsonObject {
  const { sent, height, time, error = null, logs, units, fee, before, after } = landed
  const tokens = (balances: readonly TokenBalance[]) =>
    balances.map(({ accountIndex, mint, owner, amount }) => ({
      accountIndex,
      mint,
      owner,
      programId: TOKEN_PROGRAM,
      uiTokenAmount: amountView(amount, decimalsOf(mint)),
    }))
  return {
    blockTime: time,
    slot: Number(slotOf(height)),
    version: sent.message.version,
    transaction: transactionView(sent, encoding),
    meta: {
      computeUnitsConsumed: Number(units),
      err: error,
      fee: Number(fee),
      innerInstructions: [],
      loadedAddresses: { readonly: [], writable: [] },
      logMessages: logs,
      postBalances: after.lamports.map(Number),
      postTokenBalances: tokens(after.tokens),
      preBalances: before.lamports.map(Number),
      preTokenBalances: tokens(before.tokens),
      rewards: [],
      status: error === null ? { Ok: null } : { Err: error },
    },
  }
}

function transactionView(sent: SentTransaction, encoding: Json): Json {
  const { wire, transaction } = sent
  const signatures = Object.values(transaction.signatures).map((each) =>
    encodeBase58(each === null ? new Uint8Array(64) : Uint8Array.from(each)),
  )
  switch (encoding) {
    case 'base64':
      return [Buffer.from(wire).toString('base64'), 'base64']
    case 'base58':
      return [encodeBase58(wire), 'base58']
    case 'json':
      return { signatures, message: messageView(sent) }
    case 'jsonParsed':
      return { signatures, message: parsedMessageView(sent) }
    default:
      throw invalidParams(`unknown encoding ${JSON.stringify(encoding)}.`)
  }
}

function messageView({ message, accounts, blockhash }: SentTransaction): JsonObject {
  const { numSignerAccounts, numReadonlySignerAccounts, numReadonlyNonSignerAccounts } = message.header
  return {
    header: {
      numRequiredSignatures: numSignerAccounts,
      numReadonlySignedAccounts: numReadonlySignerAccounts,
      numReadonlyUnsignedAccounts: numReadonlyNonSignerAccounts,
    },
    accountKeys: accounts,
    recentBlockhash: blockhash,
    instructions: message.instructions.map(({ programAddressIndex, accountIndices = [], data = [] }) => ({
      programIdIndex: programAddressIndex,
      accounts: accountIndices,
      data: encodeBase58(Uint8Array.from(data)),
      stackHeight: null,
    })),
  }
}

/** With accounts by name; instructions are those of programs that a node cannot parse. */
function parsedMessageView({ message, accounts, blockhash }: SentTransaction): JsonObject {
  const { numSignerAccounts, numReadonlySignerAccounts, numReadonlyNonSignerAccounts } = message.header
  const nameOf = (index: number) => accounts[index] ?? null
  return {
    accountKeys: accounts.map((pubkey, index) => ({
      pubkey,
      signer: index < numSignerAccounts,
      source: 'transaction',
      writable:
        index < numSignerAccounts
          ? index < numSignerAccounts - numReadonlySignerAccounts
          : index < accounts.length - numReadonlyNonSignerAccounts,
    })),
    recentBlockhash: blockhash,
    instructions: message.instructions.map(({ programAddressIndex, accountIndices = [], data = [] }) => ({
      programId: nameOf(programAddressIndex),
      accounts: accountIndices.map(nameOf),
      data: encodeBase58(Uint8Array.from(data)),
      stackHeight: null,
    })),
  }
}
