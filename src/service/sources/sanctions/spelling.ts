/** Spellings of one name in Latin letters: the first stands for all. Only those that sound alike and are one name. */
const SPELLINGS: readonly string[] = [
  'muhammad mohammed mohamed mohammad muhammed mohamad muhamad mohamet mahomed',
  'ahmad ahmed achmed ahmet',
  'mahmud mahmoud mahmood mehmood',
  'husayn hussein hussain husain hossein hosein hussien',
  'hasan hassan',
  'yusuf youssef yousef yusef yousuf youssouf yousif',
  'usama osama oussama ussama',
  'ladin laden',
  'umar omar',
  'uthman osman othman',
  'abdallah abdullah abdulla abdellah abdoullah',
  'qasim qasem ghasem ghasim kassem kasem qassem qassim kasim',
  'sulayman sulaiman suleiman suleyman soleiman soleyman',
  'sulaymani soleimani soleymani suleimani suleymani',
  'khalid khaled',
  'ibrahim ebrahim ibraheem',
  'ayman aiman',
  'zawahiri zawahri zawaheri',
  'mustafa mostafa moustafa mustapha',
  'said saeed saied sayeed',
  'rahman rehman rahmaan',
  'assad asad',
  'qaida qaeda qaidah qaedah kaida',
  'hizballah hezbollah hizbullah hizbollah hezballah hezbullah',
  'taliban taleban',
  'yevgeniy jewgeni jewgenij jevgeni jevgenij evgeny evgeniy yevgeny evgeni yevgeni evgenii yevgenii',
  'dmitriy dmitrij dmitry dmitri dimitri dmitrii',
  'sergey sergei serguei sergej',
  'aleksandr alexander alexandr aleksander oleksandr',
  'aleksey alexej aleksej alexey alexei aleksei oleksiy',
  'nikolay nikolai nicolai nikolaj',
  'nicolas nicholas nikolas nickolas nicolaus',
  'andrey andrei andrej',
  'yuriy juri jurij yury yuri iurii',
  'viktor victor',
  'vladimir volodymyr wladimir',
  'mikhail michail mihail',
  'grigoriy grigory grigori',
  'joaquin joaquim',
  'qadhafi gaddafi qaddafi khadafy khadafi gadhafi kadafi kadhafi gheddafi gadafi qadafi qadhdhafi',
  'muammar moammar muamar mouammar moamar muamer',
  'husayni hosseini husseini hussaini hosseyni huseini husaini',
  'khamenei khameneyi khamenai chamenei',
  'ali aly',
]

const ONE_FOR_ALL: ReadonlyMap<string, string> = new Map(
  SPELLINGS.flatMap((line) => {
    const [first = '', ...others] = line.split(' ')
    return others.map((other) => [other, first] as const)
  }),
)

/** One spelling for all of a name: `mohamed` is `muhammad`, `abdelkader` is `abdulkader`, `setschin` is `sechin`. */
export function respell(word: string): string {
  const english = word.replaceAll('schtsch', 'shch').replaceAll('tsch', 'ch').replaceAll('sch', 'sh')
  return ONE_FOR_ALL.get(english) ?? english.replace(/^abd[aeo]l(?=.)|^abd[aeo]l$/, 'abdul')
}

/** Names that very many people bear, in the spelling of `respell`: alone they tell nobody apart. */
export const COMMON: ReadonlySet<string> = new Set(
  (
    'muhammad ahmad mahmud husayn husayni hasan ali yusuf umar uthman abdallah qasim sulayman khalid ibrahim mustafa ' +
    'said rahman karim rahim reza mahdi khan singh kumar kim lee li wang zhang chen liu yang nguyen tran ivan ivanov ' +
    'sergey aleksandr aleksey andrey mikhail nikolay viktor vladimir dmitriy jose juan maria carlos garcia rodriguez ' +
    'gonzalez martinez lopez hernandez perez sanchez john james david michael robert smith jones peter paul'
  ).split(' '),
)

/** Given names of Arabic and Persian script, of which the letters alone say too little. */
const ARABIC: ReadonlyMap<string, string> = new Map([
  ['علی', 'ali'],
  ['علي', 'ali'],
  ['محمد', 'muhammad'],
  ['احمد', 'ahmad'],
  ['أحمد', 'ahmad'],
  ['حسین', 'husayn'],
  ['حسين', 'husayn'],
  ['حسن', 'hasan'],
  ['رضا', 'reza'],
  ['مهدی', 'mahdi'],
  ['عمر', 'umar'],
  ['سعید', 'said'],
])

/** How lists spell the characters of Korean names that have a Chinese reading of their own. */
const KOREAN: ReadonlyMap<string, string> = new Map(
  Object.entries({
    金: 'kim',
    正: 'jong',
    恩: 'un',
    日: 'il',
    成: 'song',
    與: 'yo',
    与: 'yo',
    哲: 'chol',
    男: 'nam',
    崔: 'choe',
    龍: 'ryong',
    龙: 'ryong',
    海: 'hae',
    永: 'yong',
  }),
)

/** The text with words that the dictionaries know in Latin letters. */
export function knownWords(text: string): string {
  return text
    .replace(/\p{Script=Arabic}+/gu, (word) => ARABIC.get(word) ?? word)
    .replace(/\p{Script=Han}{2,4}/gu, (name) => {
      const syllables = Array.from(name, (character) => KOREAN.get(character))
      // Only a name that begins with one of these surnames is Korean for sure enough.
      const isKorean = /^[金崔]/u.test(name) && syllables.every((syllable) => syllable !== undefined)
      return isKorean ? syllables.join(' ') : name
    })
}

const words = (text: string): ReadonlySet<string> => new Set(text.split(' '))

/** The surname 이 alone has no consonant to tell it by. */
const SURNAME_RI = 'i'

/**
 * A Korean syllable, transliterated letter by letter, as lists spell it in names: `gim` is `kim`, `jeong` is `jong`, `eun`
 * is `un`, `bag` is `pak`.
 */
export function asListed(syllable: string): string {
  const lower = syllable.toLowerCase()
  if (lower === SURNAME_RI) return 'ri'
  return lower
    .replace(/^g(?!g)/, 'k')
    .replace(/^b(?!b)/, 'p')
    .replace(/^l/, 'r')
    .replace(/(?<!n)g$/, 'k')
    .replace(/b$/, 'p')
    .replace('eo', 'o')
    .replace('eu', 'u')
}

/** Said to a person, not part of the name. */
export const HONORIFICS = words(
  'mr mrs ms miss dr prof professor sir sheikh shaykh sheik shaikh haji hajji hajj mullah mulla maulana maulavi mawlawi general gen colonel col major captain capt ayatollah sayyid president minister jr sr',
)

/** What a company is by law, and words that join others: two companies are not alike for having them in common. */
export const LEGAL_FORMS = words(
  'co ltd limited llc llp inc incorporated corp corporation company gmbh ag kg sa sarl srl spa bv nv oy ab as plc jsc ojsc pjsc cjsc zao oao ooo pao fze fzco fzc dmcc est the of and for a group holding holdings international general trading',
)

/** Words that many organisations have in their names: left out by a caller, they tell little. */
export const GENERIC = words(
  'private military organization organisation network front bank air airlines airways shipping lines national islamic foundation party brigade brigades army forces force union center centre committee movement council ministry republic democratic popular people state industries industry services service institute university charity trust society central',
)

/** Joins names together and is left out as often as it is written. */
export const PARTICLES = words(
  'al el ul la le les de del della di da do dos das du der den van von bin ibn ben bint y e',
)
