package main

import "strings"

// questions are what people ask a model in a line.
func questions() []string {
	return strings.Split(strings.TrimSpace(questionTexts), "\n")
}

const questionTexts = `
Hi
Hello!
hey, are you there?
Thanks, that helped.
What is the capital of Peru?
What's 17 + 25?
Tell me a joke about cats.
Write a haiku about autumn rain.
Summarize this in one sentence.
Translate "good morning" into French.
You are a helpful assistant.
You are a terse assistant. Answer in at most ten words.
How do I reverse a list in Python?
What's the weather like in Oslo right now?
Explain photosynthesis to a five-year-old.
Give me three names for a coffee shop.
Who wrote The Brothers Karamazov?
Is 91 a prime number?
Fix the bug in this function, please.
Name two rivers in Africa
Say this is a test
What can you see in this picture?
Continue.
Describe the attached document in a few words.
Remember that my favourite colour is green.
What did I just ask you?
Count from 1 to 5
Extract the name and the age: Ann is 31.
Return only valid JSON.
Where were you born?
Use the tool to look up the stock price of ACME.
What time is it in Tokyo and in Madrid?
Recommend a science fiction book.
Why is the sky blue?
Please answer in German from now on.
Once upon a time
List the planets of the solar system in order.
Can you use emoji in your answer?
Plan a two-day trip to Lisbon for a family of four.
What is AI?
The current temperature is 21 degrees and it is sunny.
Multiply the result by 3, then add 10.
Please call me back at noon
Think step by step.
Is water wet? yes or no
How many r's are in strawberry?
Compare the two candidates and pick one.
I want to return my order, it arrived broken.
Who are you and what can you do for me today?
Classify the sentiment of this review: "Great value, slow delivery."
`

// chats returns the pieces of everyday writing: letters, questions and small
// talk, written for this corpus, because nothing of the kind under a fitting licence is
// in the packages. The declaration and the handbook are both formal, and formal words are
// cheaper. For each language, the first is for fitting and the second held out.
func chats() map[string][]string {
	out := map[string][]string{}
	for _, part := range strings.Split(chatTexts, "\n== ")[1:] {
		lang, rest, _ := strings.Cut(part, "\n")
		for _, text := range strings.Split(rest, "\n--\n") {
			out[lang] = append(out[lang], strings.TrimSpace(text))
		}
	}
	return out
}

const chatTexts = `
== en
Hey Sam, quick one before you leave: did grandma's parcel ever turn up? The tracking page has said "out for delivery" since Tuesday, and I'm starting to suspect the neighbour's dog. Also, please don't touch the soup in the blue pot, it's for tonight. I put far too much pepper in, so I'm hoping an hour on the stove and half a potato will rescue it.
- milk, the cheap one
- 2 lemons
- bin bags!!
Oh, and Joe rang. He's stuck in Leeds again, same broken gearbox, same grumpy mechanic. He swears he'll be home by Friday, but he swore that last week too. Hugs, M.
--
Can you help me with a toast for my sister's wedding? Nothing soppy. She's four years older than me, she taught me to swim by throwing me off a jetty, and she still owes me twelve quid from 1998. Her husband, Tomasz, bakes bread at three in the morning and sings while he does it, badly. I'd like one joke about the jetty, one about the singing, and then something kind at the end that won't make me cry in front of Uncle Pete. Two minutes, tops. If it rhymes I'll never speak to you again.
--
Two goldfish in a tank. One says, "D'you know how to drive this thing?"
My uncle Fergus never drank before noon; he just moved the clock.
A bore is a chap who, when you ask him how he is, tells you.
If at first you don't succeed, skydiving's not for you.
"Waiter, what's this fly doing in my soup?" "Backstroke, sir, by the looks of it."
Always borrow cash off a pessimist: he doesn't expect it back.
Early to bed and early to rise, and your girl goes out with the other guys.
--
The gaffer's gone, the kettle's dry,
the whippets whimper on the mat;
a threadbare moon hangs out to dry
and drips upon the vicar's hat.
Oh, fetch the fiddle, Nell, my dove,
and scrape a reel for Tom o' Shanks,
who pawned his boots and lost his love
and sleeps it off on Severn banks.
Hush, hobnails! Mind the creaking stair,
the bailiff snores, the tallow gutters;
we'll dance till cockcrow, bald and bare,
then bolt like thieves behind the shutters.
== de
Na, schon wach? Ich sitz seit halb sechs in der Küche, der Kater hat wieder am Vorhang gehangen und dabei Omas Blumentopf runtergeschmissen. Scherben überall, Erde bis unter den Kühlschrank. Kannst du auf dem Heimweg beim Bäcker vorbeischauen? Zwei Laugenstangen und was Süßes, egal was, Hauptsache keine Rosinen. Und ruf bitte deinen Bruder zurück, der quengelt schon den ganzen Vormittag wegen der Bohrmaschine. Angeblich hast du sie ihm im März versprochen. Ich halt mich da raus. Kuss!
--
Der alte Fährmann spuckte ins Wasser und schwieg. Drüben am anderen Ufer kläffte ein Hund, sonst war nichts zu hören als das Glucksen unter den Planken. "Sie wollen also wirklich hinüber?", brummte er schließlich. "Bei dem Nebel?" Lene nickte bloß. Ihre Schuhe waren durchgeweicht, der Koffer wog schwer wie ein Sack nasser Kohlen, und im Dorf hinter ihr schlug es gerade erst vier. Vom Kirchturm flatterten Krähen auf. "Dann setzen Sie sich", sagte er, "und reden Sie mir nicht dazwischen."
--
Fritzchen kommt heulend heim: »Papa, der Lehrer hat mich 'nen Esel genannt!« — »Und was hast du gesagt?« — »I-ah, nix!«
Wer nachts den Kühlschrank plündert, muss tags die Hose aufknöpfen.
Lieber einen Spatz in der Pfanne als eine Taube, die aufs Auto kackt.
Ein Optimist ist ein Mensch, der Kreuzworträtsel gleich mit Kugelschreiber ausfüllt.
Kräht der Gockel auf dem Mist, ändert sich's Wetter oder er ist halt besoffen.
Was Hänschen verbummelt, muss Hans nachsitzen.
Irren ist männlich, meckern schwäbisch.
--
Grau tropft der Tag vom Scheunendach,
die Kröten quarren unterm Steg,
ein Schimmel trottet, lahm und schwach,
den ausgefahr'nen Lehmschlagweg.
Was gräbst du, Totengräber, sprich?
"Rüben", brummt der, "fürs liebe Vieh."
Der Nebel wischt und wischt und wischt
mir Mütz' und Schnurrbart und das Knie.
Heidi, mein Schatz, das Bier wird schal,
der Kantor fiedelt, krumm der Bogen;
wir tanzten gestern schon einmal,
da hat der Mond uns angelogen.
== fr
Coucou ma belle, t'as vu le temps qu'il fait ? On devait aller pique-niquer au bord du lac et il tombe des cordes depuis ce matin, les gosses tournent en rond et Léo a déjà peint le chat en vert. Bref, si tu t'ennuies, passe donc prendre le goûter, j'ai raté une tarte aux prunes mais avec de la crème ça passe. Au fait, t'aurais pas encore ma perceuse ? Mon beau-frère débarque samedi pour les étagères et je voudrais pas avoir l'air d'une cruche. Bises, et mets tes bottes !
--
Le vieux s'était assis sur la malle, les mains croisées sur sa canne, et il regardait la pluie noyer les choux. « Elle ne viendra plus, allez », marmonna-t-il. La petite ne répondit pas. Elle grattait du bout de l'ongle une croûte de boue sèche, elle écoutait le clapotis dans la gouttière, le ronron de la bouilloire. Soudain, un coup de klaxon, puis deux. Le chien bondit, renversa le tabouret, et tout le monde se mit à crier en même temps, même le vieux, qui avait perdu son béret.
--
Toto rentre de l'école : « Maman, j'ai eu vingt ! » « En quoi, mon chou ? » « Cinq en calcul, sept en dictée et huit en gym. »
Qui vole un œuf ferait mieux de piquer la poule.
L'alcool tue lentement ; on s'en fout, on n'est pas pressés.
Un pessimiste, c'est un optimiste qui a ouvert son courrier.
La belle-mère débarque jeudi, planquez le pinard et les charentaises.
Pierre qui roule dégringole, mais quelle rigolade !
Il avait le cerveau si étroit que ses idées marchaient de profil.
--
Il pleuvote, il bruine, il crachine,
le facteur jure sous son ciré,
et la mémé, sur sa machine,
recoud un bouton déchiré.
Margot, Margot, range ta frange,
le tambour-major t'a zieutée ;
ton cœur n'est pas une phalange,
ni tes quinze ans bonne ratée.
Trinquons, cousins, aux vieilles lunes,
aux bistrots noirs, aux fins de mois,
à ces cailloux pris pour des prunes
dans la musette de François.
== es
Oye, ¿al final vienes el sábado o te rajas como siempre? Mi tía ha hecho croquetas para un regimiento y el primo Nacho trae la guitarra, así que ya sabes lo que nos espera. Yo llevo el hielo, tú trae algo fresquito, y no me vengas con esa sidra caliente del otro día. Ah, y avisa a Lucía, que no me coge el teléfono desde que le manché el sofá. Fue sin querer, de verdad, se me resbaló el vaso. ¿Tú crees que sigue enfadada? Uf, qué vergüenza. Bueno, un abrazote y no llegues tarde.
--
La abuela colgó el delantal detrás de la puerta y se asomó al patio. Los gatos dormían amontonados en la carretilla, el burro espantaba moscas con la cola y, más allá de los olivos, alguien silbaba una copla desafinada. «Ese es Ramón», dijo sin girarse, «y viene borracho». No se equivocaba nunca. Al rato apareció tambaleándose por el camino, con una gallina bajo el brazo y la camisa llena de barro, y juró que la había encontrado así, suelta y triste, llorando junto al pozo.
--
—Doctor, doctor, me tiemblan mucho las manos.
—¿Bebe usted mucho?
—¡Qué va, si se me derrama casi todo!
Jaimito llega tarde: «Profe, es que soñé que jugaba el Betis y hubo prórroga.»
Más vale pájaro en mano que padre ahorcado; bueno, o algo así decía mi abuelo, que era sordo.
A quien madruga, Dios le ayuda; a quien trasnocha, la aspirina.
Si los borrachos dijeran la verdad, ¿quién pagaría la ronda?
Casarse por segunda vez es el triunfo de la esperanza sobre la experiencia. Por tercera, ganas de fastidiar.
--
Verde la aceituna, verde el lagarto,
y la niña descalza junto al esparto.
Que no me llame nadie, que no me nombre,
que me voy con los grillos, no con un hombre.
Ay, molinero flaco, burla del viento,
tu mula se ha bebido mi pensamiento;
tu rueda gime y gime, nadie la engrasa,
y el cuco se ha mudado dentro de casa.
Duérmete ya, lucero, cierra el postigo,
que la luna rabiosa ladra conmigo.
--
Oye, tío, no te lo vas a creer: ayer en el curro se coló un jabalí por el parking, tal cual, y el vigilante se subió al capó del Seat de Maripuri, que le dejó las botas marcadas. Ella, hecha una furia, le tiró el bocata de calamares al bicho y el muy tragón se lo zampó y se largó tan pancho. Nos reímos tanto que a Chema se le saltó un empaste. Total, que el viernes invito yo a cañas, pero nada de garrafón, ¿eh?, que luego roncas como un tractor y no hay quien pegue ojo.
--
La pereza es la madre de todos los vicios, y como madre hay que respetarla.
Errar es humano; echarle la culpa a otro, más humano todavía.
Nadie es perfecto. Yo soy Nadie.
Huye de las tentaciones, pero despacito, para que te alcancen.
El dinero no da la felicidad, pero calma los nervios una barbaridad.
Hay dos palabras que abren todas las puertas: «tire» y «empuje».
Lo bueno si breve, dos veces bueno; lo malo, con cachondeo.
Tengo la conciencia limpia: jamás la he usado.
== it
Ciao bello, ma dove ti sei cacciato? Ti ho cercato tutta la mattina, pure la Franca del bar non ti ha visto. Senti, mi si è piantata la macchina davanti alla scuola, figurati che figura, con tutti i genitori che suonavano e il vigile che rideva sotto i baffi. Mi presti la tua fino a lunedì? Te la riporto pulita, giuro, stavolta niente briciole. E poi ti devo raccontare di mio cognato, che si è messo in testa di allevare lumache in garage. Non sto scherzando. Dai, chiamami appena puoi!
--
Il ragazzo si arrampicò sul muretto e guardò giù, verso gli scogli, dove le onde sbattevano e schiumavano come bestie. «Salta!» gli gridavano gli altri, fradici, ridendo. Aveva le ginocchia sbucciate e un nodo in gola. Pensò a suo nonno, che a nove anni si era tuffato di notte per una scommessa, vincendo un coltellino e uno schiaffo. Chiuse gli occhi. Dalla spiaggia una voce di donna strillò il suo nome, quello intero, quello dei guai grossi, e allora, per la paura, saltò davvero.
--
Un carabiniere entra in farmacia: «Mi dia qualcosa per le tarme.» «Naftalina?» «No, no, qualcosa che le ammazzi, a tirargli le palline non ne becco una!»
Il babbo al figlio somaro: «Ai tuoi anni, Garibaldi era il primo della classe!» «E ai tuoi, babbo, era già generale.»
Chi va piano, va sano; chi va forte, va alla morte.
Se sbadigli durante la predica, mettiti almeno la mano davanti: il prete si scoraggia.
Gallina vecchia fa buon brodo, ma provaci tu a spennarla.
Pierino: «Signora maestra, si può essere puniti per una cosa che non si è fatta?» «Ma certo che no!» «Meno male: non ho fatto i compiti.»
--
Cadono foglie gialle sul selciato,
fischia il merlo, tossisce il calzolaio;
la Nunzia sgrana fagioli sull'uscio
e bestemmia sottovoce il suo rosario.
Oh, tornassero almeno le lucciole,
le sbucciature, i pantaloni corti,
quel fischio sotto casa dopo cena
e il cocomero spaccato sui ginocchi!
Adesso suona solo il frigorifero,
sbuffa, gocciola, ronza, s'addormenta:
gli somiglio ogni giorno un po' di più.
--
Domenica il Catanzaro ne ha buscate quattro, roba da piangere. Il terzino inciampava sul pallone, il portiere pareva un lampione spento, e l'arbitro, quel cornuto, fischiava pure gli starnuti. Al bar Sport Gegè ha giurato che brucia l'abbonamento; lo giura da vent'anni. Poi gli hanno pagato un amaro, s'è messo a cantare e buonanotte ai suonatori. Ma vi pare normale vendere Ciccio Brancaleone per tenersi quel brocco lì, che corre come mia zia con la spesa? Mah. Forza ragazzi, sempre e comunque, pure in serie Zeta.
--
L'amore è cieco, però il matrimonio gli ridà la vista.
Non rimandare a domani ciò che puoi tranquillamente non fare mai.
Errare è umano, ma per incasinare davvero tutto serve un computer.
Ho smesso di fumare, bere e giocare a carte: sono state le due ore peggiori della mia vita.
La coscienza pulita è spesso segno di cattiva memoria.
Ridi, e il mondo riderà con te; russa, e dormirai da solo.
Chi dorme non piglia pesci, ma almeno non puzza.
Era così avaro che guardava la messa in televisione e all'offertorio spegneva.
== pt
Oi, sumida! Tá tudo bem por aí? Ontem passei na sua rua e as janelas tavam fechadas, fiquei preocupado. Escuta, o Zeca arrumou uns ingressos pro jogo de quarta, fica lá atrás do gol, mas é de graça, então não reclama. Leva casaco que de noite esfria pra caramba. Minha mãe mandou dizer que o bolo de fubá que você elogiou tá esperando, e que se demorar muito o cachorro come. Ele já comeu meu chinelo, uma meia e metade do controle da televisão. Me liga!
--
A velha cuspiu a casca da laranja e apontou o queixo para o rio. «Foi ali», disse, «que o meu homem perdeu a dentadura.» Os netos riram até lhes doer a barriga. Estava um calor de rachar, as cigarras não se calavam e nem o gato tinha forças para ir atrás dos pardais. O mais pequeno quis saber se os peixes agora mastigavam. Ela pensou um bocadinho, coçou o joelho e respondeu muito séria que sim, e que por isso é que já ninguém lá molhava os pés.
--
O Manel entra na tasca: «Ó Zé, põe-me uma bica sem açúcar.» «Açúcar não tenho, só se for sem canela.»
Quem não tem cão caça com gato; quem não tem gato, que compre ratoeira.
Deitar cedo e cedo erguer dá olheiras e faz crescer a barriga.
A sogra telefonou: chega sexta, traz chouriços e opiniões.
Joãozinho, conjuga o verbo ir no futuro! — Eu fui-me embora, professora.
Água mole em pedra dura, tanto bate que acaba em inundação.
Pobre só sobe na vida quando o barraco explode.
--
Chora a viola, ri o acordeão,
a Rosa pôs um cravo no cabelo;
pula a fogueira, ó meu toleirão,
que o balão já subiu, ninguém vai tê-lo!
Cheira a sardinha, a manjerico, a mosto,
o cego pede um tostão ao sacristão,
e a lua, gorda, num telhado exposto,
espreita o beijo atrás do barracão.
Ai, quem me dera ser gaivota ou vinho,
dormir na proa, acordar no Bugio,
e não ter chefe, renda nem caminho,
só este bafo morno junto ao rio.
== ru
Слушай, ты где вообще пропадаешь? Звоню третий день, а у тебя то занято, то гудки. Мы тут с Лёшкой чинили бабушкин самовар, залили всю кухню, соседка снизу прибежала с тряпкой и орёт. Смех и грех! Кстати, дрель твоя у меня, не ищи. И ещё: Катька выходит замуж, представляешь? За того самого рыжего с гитарой. Свадьба в субботу, надень что-нибудь приличное, не свитер же с оленями. Купи по дороге хлеба, лимон и чего-нибудь к чаю, только не пряники, они как камень. Ну всё, целую, не кисни!
--
Старик крякнул, поправил шапку и полез на чердак. Там пахло мышами, пылью и прошлогодними яблоками. «Ну где же она, проклятая?» бормотал он, роясь в тряпье. Внизу скрипнула дверь, залаял пёс, кто-то топтался на крыльце, стряхивая снег с валенок. Внучка задрала голову: «Дед, слезай, к тебе почтальон!» А он не слышал. Сидел на корточках у окошка и держал на ладони ржавую свистульку, ту самую, что потерял сорок лет назад, когда удирал от чужих гусей через крапиву.
--
Встречаются два рыбака:
— Ну как, клюёт?
— Клюёт, зараза! Вчера так клюнуло, что еле домой дополз, тёща дверь открыла, ахнула и сама за второй побежала.
Вовочка приносит дневник. «Опять двойка?» — «Зато не списывал!»
Не откладывай на завтра то, что можно выпить сегодня.
Лежачего не бьют, его терпеливо пинают.
Ничто так не портит цель, как попадание.
Сколько волка ни корми, а у ишака всё равно уши длиннее.
Если долго мучиться, что-нибудь отвалится.
--
Скрипнет калитка, залает Полкан,
выйдет хозяйка, поставит стакан,
сядет у печки, поправит платок:
«Где ж ты, касатик, полгода отлог?»
Где я? Да всюду: лесами, пургой,
с драной гармошкой, с хромою ногой.
Пел, воровал, зубоскалил, грешил,
валенки пропил, а шапку зашил.
Сыпь же, метелица, сыпь, не жалей,
сыпь на скворечник, на крыши, на клей...
--
Ребята, ну вы чего, совсем обалдели? Я ж русским языком просил: не трогайте щиток, там проводка ещё при Брежневе проложена! Петрович сунул отвёртку, бабахнуло так, что у Зинки с третьего этажа борщ с плиты прыгнул. Теперь сидим при свечках, как дураки, доедаем растаявшие пельмени и травим байки. Электрик обещал к обеду, но он ещё в понедельник к обеду обещал. Короче, тащите гитару, батон и чего покрепче, будет весело. И Тузика покормите, он с перепугу под диван забился и скулит.
--
Чужая душа — потёмки, а своя — чулан без лампочки.
Лень — это привычка отдыхать перед усталостью.
Умный поймёт, дурак запишет, а начальник потеряет.
Женщина прощает обиду, но потом долго ещё её припоминает.
В споре рождается не истина, а мордобой.
Хорошо смеётся тот, кто смеётся без последствий.
Тише едешь — никому не должен.
Оптимист верит, что мы живём в лучшем из миров; пессимист боится, что так оно и есть.
Склероз не вылечишь, зато про него можно забыть.
== uk
Привіт, соню! Ти вже прокинувся чи досі хропеш? У нас тут таке робиться: кіт упав у відро з фарбою і тепер бігає по хаті весь синій, а бабця женеться за ним з рушником. Я вже й не знаю, сміятися чи плакати. Слухай, позич мені до понеділка гривень двісті, бо зарплату знов затримують. Поверну, чесне слово, ще й вареників принесу. І скажи Оленці, хай не сердиться, я ж не навмисне зламав їй парасольку, то вітер був скажений. Бувай!
--
Мельник сплюнув, почухав потилицю й глянув на хмари. Дощем навіть не пахло. Качки порозлазились по висохлому ставку, у бур'яні ліниво дзижчали джмелі, а з-за тину визирало чиєсь замурзане хлоп'я. «Дядьку, а правда, що у вас під колесом чорт живе?» Мельник насупив брови, хотів гримнути, та передумав. «Живе», каже, «тільки він нині теж без роботи. Сидить голодний і питає, чи нема в селі цікавих, котрі вуха не миють». Малий зойкнув і дременув так, що аж курява знялась.
== bg
Ей, къде се губиш бе, човек? Цяла седмица те търся. Вчера ходихме с Митко за гъби и се изгубихме като последните будали, накрая един овчар ни изведе до пътя и ни нагости със сирене. Ще ти разправям, умряхме от смях. Слушай, майка ми пита искаш ли два буркана лютеница, че няма къде да ги слага. И вземи си най-после чадъра, стои зад вратата от Великден. Купи хляб, ако минаваш край фурната, и нещо сладко за малката. Хайде, чакам те довечера!
--
Дядо Стойко седна на прага, изу си цървулите и въздъхна. Магарето пак беше избягало в чуждите лозя. Бабата мърмореше край огнището, котката дебнеше врабците, а от баира се чуваше гайда. «Туй е оня хаймана, Пешо», рече старецът, «пак не си е окосил ливадата». После се почеса по темето, хитро присви очи и викна на внучето: «Я тичай, моето момче, кажи му, че вълкът е слязъл в кошарата му. Да видим тогава как ще надува!» Детето хукна, само прах се вдигна.
== pl
Hej śpiochu, żyjesz jeszcze? Dzwonię i dzwonię, a u ciebie tylko trzaski. Wczoraj z Jackiem ciągnęliśmy szafę na czwarte piętro, utknęła na półpiętrze i pani Halina musiała przeskakiwać przez nią z zakupami. Myślałem, że pęknę ze śmiechu. Słuchaj, pożycz mi na weekend plecak, ten zielony, bo mój zżarły mole. Oddam wypranego, słowo. A, i mama pyta, czy wpadniesz w niedzielę na gołąbki. Weź coś słodkiego, byle nie te suche pierniki z zeszłego roku. No, trzymaj się ciepło!
--
Stara Jagna splunęła przez ramię i dźgnęła kijem błoto. „Tędy nie przejdziecie” – burknęła. Chłopak zadarł głowę, nos miał czerwony od mrozu, w dziurawych butach chlupotała mu woda. Za olszyną coś trzasnęło, zerwały się wrony, pies zjeżył sierść i zaczął warczeć. „A jeśli pójdziemy grzbietem?” – szepnęła dziewczynka, ściskając w garści gwizdek. Baba roześmiała się, aż jej chustka zjechała na oczy. „Grzbietem? Tam, kruszynko, nawet wilki chodzą parami”.
--
Przychodzi baba do lekarza z żabą na głowie. „Co pani dolega?” — „Panie doktorze — rechocze żaba — coś mi się do tyłka przykleiło!”
Gdyby kózka nie skakała, toby smutne życie miała.
Lepszy wróbel w garści niż mandat za wycieraczką.
Kto rano wstaje, ten jest niewyspany.
Jasiu, czemuś się spóźnił? — Bo dzwonek, proszę pani, zadzwonił przed moim przyjściem.
Pieniądze szczęścia nie dają, dopiero zakupy.
Teściowa przyjeżdża jak grypa: znienacka i na dwa tygodnie.
--
Szumi wierzba, skrzypi żuraw przy studni,
chłop zasnął na furze, koń drogę odgadnie.
Świerszcze cykają, im dalej, tym trudniej
zliczyć te gwiazdy, co toną gdzieś na dnie.
Hej, Maryś, Maryś, zgubiłaś trzewiczek,
gęsi go skubią, śmieje się proboszcz,
a twój kapelusik, wstążka i koszyczek
płyną rzeczułką — dogoń je, no, dopłyń, proszcz!
Zgasła już lampa, myszy chrupią żyto,
dziad mruczy pacierz, wiatr rozwiał siano.
== tr
Selam canım, neredesin sen ya? Dün akşam seni bekledik bekledik, çaydanlık üç kere kaynadı. Annem börek yapmıştı, sana ayırdığı tabağı bizim obur kardeşim silip süpürmüş, haberin olsun. Bak, yarın hava güzelse vapura atlayıp karşıya geçelim mi? Martılara simit atarız, biraz kafamız dağılır. Şemsiyeni de getir, geçen seferki gibi sırılsıklam olmayalım. Bir de o ödünç aldığın romanı unutma, sahibi kapıma dayandı. Hadi öptüm, geç kalma!
--
Yaşlı balıkçı ağları omzuna attı, gözlerini kısıp ufka baktı. Lodos çıkacaktı, belliydi; kediler bile iskelenin altına sinmişti. "Baba, gitmesek bugün?" dedi oğlan, sesi titreyerek. Adam güldü, dişlerinin arasında sönük bir sigara. "Korkma ulan, deniz bizi tanır." Küçük kayık homurdanarak uzaklaştı kıyıdan. Kahvedekiler tavlayı bırakıp arkalarından el salladılar; biri çay bardağını devirdi, öbürü küfretti, sonra gökyüzü birdenbire kurşun gibi karardı.
== zh
喂，你到底起床没有啊？我都在楼下等了快二十分钟了，脚都冻麻了。昨晚跟老王他们打牌，输得裤子都快没了，回家还被我妈骂了一顿。对了，你上次借我的那把伞我弄丢了，别生气嘛，改天请你吃火锅赔罪。听说小丽要搬去南方了，真舍不得，咱们周末给她办个送别会怎么样？你负责买蛋糕，别买榴莲味的，胖子一闻就想吐。还有，记得把吉他带上，弦断了两根也没关系，反正没人听得出来。快点下来，豆浆要凉啦！
--
老头子蹲在门槛上，眯着眼睛抽旱烟，半天不吭声。院子里的鸡咯咯乱叫，黄狗趴在墙根底下打盹，尾巴一甩一甩地赶苍蝇。“爷爷，狐狸真的会变成姑娘吗？”孙女托着腮帮子问。他磕了磕烟锅，慢悠悠地说：“怎么不会？你奶奶当年就是踩着月光翻墙进来的，怀里还揣着两只偷来的桃子。”灶房里哐当一声，锅盖掉在地上，奶奶举着锅铲冲出来，骂他老不正经，一家人笑得前仰后合。
--
请问这个软件怎么装到旧电脑上？我照着网上的步骤，先改了镜像地址，再更新列表，结果提示找不到包。后来换了一个仓库，下载倒是快了，可是重启以后屏幕一片黑，只剩光标在闪。有没有哪位大侠遇到过？我的显卡比较老，驱动是不是得手动编译？另外想问一下，家目录要不要单独分区，以后重装系统省得再备份。先谢谢各位了，解决了我回来报告。
--
老师问小明：“你长大了想干什么？”小明说：“想当校长。”“为什么？”“因为校长不用写作业，还可以骂老师。”
三个和尚没水喝，后来装了自来水，天天为谁交水费吵架。
早起的鸟儿有虫吃，早起的虫儿被鸟吃。
女儿问爸爸：“为什么妈妈生气的时候，你总说对不起？”爸爸叹气：“因为讲道理要讲一晚上。”
买彩票这么多年，中过最大的奖是再来一瓶。
== ja
ねえ、もう起きた？こっちは朝から大騒ぎだよ。猫がカーテンによじ登って、そのまま植木鉢ごと落っこちてさ、床じゅう泥だらけ。おばあちゃんは笑い転げてるし、弟は寝ぼけて靴下を片方だけ履いてうろうろしてる。ところで、この前貸した傘、まだ持ってる？夕方から降るらしいから、できれば返してほしいんだけど。あ、それと帰りに豆腐と長ねぎ買ってきて。お釣りでアイス食べていいよ。でも三個はだめ、先週おなか壊したでしょ。じゃ、あとでね！
--
じいさんは縁側にどっかり腰をおろし、ぬるくなった茶をすすった。「狸のやつ、また芋を掘りよった」とぼやいて、くしゃみをひとつ。庭では蝉がやかましく鳴き、隣の犬が退屈そうにあくびをしている。孫のケンタは膝小僧のかさぶたをいじりながら、「捕まえて汁にするの？」と目を輝かせた。「ばか言え、あいつとはもう四十年のつきあいだ」。そう言って笑った拍子に入れ歯が飛び出し、ころころ転がって、池にぽちゃんと落ちた。
== ko
야, 너 도대체 어디야? 아까부터 계속 전화했는데 왜 안 받아. 어제 삼촌이 낚시 갔다가 신발 한 짝만 건져 왔잖아, 온 식구가 배꼽 빠지게 웃었다니까. 근데 혹시 내 파란 우산 못 봤어? 너희 집에 두고 온 것 같은데. 이따 저녁에 떡볶이 먹으러 갈 건데 같이 갈래? 순대는 내가 쏠게, 대신 저번처럼 매운 거 시켜 놓고 울지 마라. 아, 엄마가 김치 가져가래. 통 무거우니까 자전거 말고 버스 타고 와. 늦으면 국물도 없다!
--
할머니는 툇마루에 걸터앉아 마늘을 까며 콧노래를 흥얼거렸다. 마당에선 병아리들이 쪼르르 몰려다니고, 누렁이는 그늘에 벌러덩 드러누워 꼬리만 까딱거렸다. "할머니, 도깨비는 진짜 메밀묵을 좋아해요?" 막내가 눈을 동그랗게 뜨고 물었다. 할머니는 껍질을 훅 불어 날리더니 빙그레 웃었다. "좋아하다마다. 네 할아비도 그 묵 한 사발에 속아서 나한테 장가왔지." 부엌 뒤에서 누군가 킥킥대다가 항아리 뚜껑을 와장창 깨뜨렸다.
== ar
يا أخي وينك مختفي؟ اتصلت فيك ألف مرة وما ترد. أمس رحنا نصيد سمك مع خالد ورجعنا بجزمة قديمة وسرطان صغير عضّ إصبعه، متنا من الضحك. اسمع، أمي طبخت ملوخية وتقول لازم تجي تتغدى معنا، ولا تنسَ تجيب خبز طازج ونعناع من عند أبو سمير. وبالمناسبة، المظلة اللي استعرتها منك ضاعت في الباص، لا تزعل، بشتري لك أحسن منها. وأختي تسلّم عليك وتسأل متى ترجّع لها الكتاب. يلا، لا تتأخر، والقهوة عليك!
--
جلس العجوز على عتبة الدكان يمشّط لحيته ويراقب القطط وهي تتخاصم على رأس سمكة. قال الصبي: «يا جدي، هل صحيح أن الغول ينام تحت الجسر؟» فضحك حتى دمعت عيناه، ثم همس: «بل كان ينام هناك، حتى سمع شخير جدتك فهرب إلى الجبل حافيًا». ارتطم طنجرة بالأرض في الداخل، وأطلّت الجدة غاضبة تلوّح بالمغرفة، فقفز الصبي وراء أكياس العدس، وتظاهر العجوز بأنه نائم، وسقطت عمامته في سطل الماء.
== hi
अरे यार, कहाँ गायब हो? सुबह से फ़ोन मिला रहा हूँ, कोई उठाता ही नहीं। कल रात छत पर बंदर घुस आया और दादी का चश्मा लेकर भाग गया, पूरा मोहल्ला डंडे लेकर पीछे दौड़ा। हँस हँसकर पेट दुख गया। सुनो, शाम को चाट खाने चलोगे? पैसे मैं दूँगा, बस पिछली बार की तरह मिर्ची खाकर रोना मत। और हाँ, मेरी साइकिल लौटा दो, भैया रोज़ पूछते हैं। आते वक़्त आधा किलो जलेबी और थोड़ा धनिया लेते आना। जल्दी आओ, चाय ठंडी हो रही है!
--
बूढ़ा नाविक खाँसा, बीड़ी बुझाई और पतवार पर टेक लगाकर बैठ गया। घाट पर बगुले ऊँघ रहे थे, दूर कहीं ढोलक बज रही थी। "काका, सच में मगरमच्छ ने तुम्हारी चप्पल खा ली थी?" छुटकी ने आँखें फाड़कर पूछा। वह ठठाकर हँसा, "खा ली? अरे बिटिया, पहनकर घूमता है आज भी, बरसात में ठक-ठक सुनाई देती है।" तभी नाव डगमगाई, टोकरी उलट गई और सारे अमरूद लुढ़ककर पानी में जा गिरे।
== cs
Nazdar vejre, ty ještě chrápeš? Zvoním ti od rána, prstem jsem málem prorazil tlačítko. Hele, včera jsme s Pepou tahali ten děsnej gauč do čtvrtýho patra, zasekl se na schodech a paní Vopičková ho musela přelézat s nákupem. Řvali jsme smíchy. Půjč mi, prosím tě, do neděle krosnu a spacák, jedeme na vandr ke Křivoklátu. A přihoď buřty, tatranky a to tvoje mizerný banjo. Babička ti peče bábovku, tak se koukej ukázat!
--
Stařec odplivl, popotáhl z čibuku a zašilhal k rybníku. „Tam bydlí,“ zahuhlal, „zelenej, šosy mu kapou.“ Kluk vytřeštil oči a schoval se za mámin šátek. V rákosí se cosi žbluňklo, žáby zmlkly, jen daleko za humny štěkal Vořech. „Dědo, a co žere?“ Dědek se rozchechtal, až mu zaskočilo. „Zvědavý fakany, holenku, s knedlíkem a se zelím.“
== el
Έλα βρε ψυχή μου, πού χάθηκες; Σε παίρνω απ' το πρωί και το σηκώνει η γιαγιά σου, που νομίζει πως είμαι ο γιατρός και μου λέει για τα γόνατά της. Άκου να δεις: χτες ο Μήτσος έπεσε με το μηχανάκι μες στα κασόνια του μανάβη, γέμισε ντομάτες ως τ' αυτιά, κι ο κυρ Θανάσης τον κυνηγούσε με τη σκούπα. Ξεκαρδιστήκαμε! Λοιπόν, το Σάββατο ψήνουμε σαρδέλες στην ταράτσα. Φέρε κιθάρα, λεμόνια κι εκείνο το ξινό κρασί του μπάρμπα σου.
--
Ο γέρος έφτυσε τα κουκούτσια, σκούπισε το μουστάκι του κι έδειξε με τη μαγκούρα κατά τα βράχια. «Εκεί», μουρμούρισε, «βούλιαξε η τράτα του Λεωνή.» Το αγόρι ανατρίχιασε. Τα τζιτζίκια τρέλαιναν τον κόσμο, μια κατσίκα κουδούνιζε πίσω απ' τις φραγκοσυκιές, κι η θάλασσα γυάλιζε σαν λαδωμένη. «Και βρήκανε το θησαυρό, παππού;» Ο γέρος γέλασε βραχνά. «Χταπόδια βρήκανε, μωρέ, κι ένα παπούτσι τρύπιο.»
--
Ένας μεθυσμένος γυρνάει χαράματα. Η γυναίκα του: «Πού γύριζες πάλι, ρεμάλι;» «Στο μνημόσυνο, Κατίνα μου.» «Ποιανού, βρε;» «Του μισθού!»
Των φρονίμων τα παιδιά πριν πεινάσουν τηλεφωνούν στη μάνα τους.
Όπου ακούς πολλά κεράσια, κράτα και σακούλα.
Κάλλιο γαϊδουρόδενε παρά γαϊδουρογύρευε, έλεγε ο συχωρεμένος κι έχασε τον γάιδαρο.
Βρέξει, χιονίσει, η πεθερά θα 'ρθει.
Ο τεμπέλης κουράζεται δυο φορές: μια που το σκέφτεται και μια που το ξεχνάει.
Φάε, παιδάκι μου, κι ας μην πεινάς!
--
Φεγγάρι μου, φανάρι μου στραβό,
ποιος σ' έβαλε στου γείτονα τη στέγη;
Νιαούριζαν οι γάτες στο στενό
κι ο μπακάλης ονειρευόταν πως πλέει.
Κουτσός ο ποντικός, κουτσή κι η αυλή,
σκουριάσανε τα κάγκελα, τα χρόνια,
κι εγώ σφυρίζω κάτω απ' τη συκή
τραγούδια για καράβια και λεμόνια.
Κοιμήσου, ξημερώνει, μη μιλάς,
του βοριά το παράθυρο χτυπάει,
και μια γριά, στα μαύρα, της γειτονιάς
τα όνειρα με τη σκούπα της μετράει.
== nl
Hé luilak, lig je nou nog in je nest? Ik sta hier al een kwartier te blauwbekken bij de pont, m'n fiets heeft een lekke band en die meeuw heeft m'n broodje kroket gejat. Oma belde trouwens, ze wil weten of je zondag komt, ze maakt snert met roggebrood en spek. Neem Joris mee, maar laat die in vredesnaam z'n trompet thuis. O ja, je krijgt nog twintig piek van me, eerlijk waar, zodra ik gestort krijg. Kusje, en schiet op!
--
De schipper krabde zich achter z'n oor, spuugde overboord en tuurde naar de kim. "Dat wordt vannacht donderen, jongen," gromde hij. De matroos slikte; z'n klompen kletsten op het natte dek. Ergens in het riet kwaakte een kikker, een reiger klapwiekte weg. "Baas, is het waar van die spookschuit?" De oude grinnikte z'n ene tand bloot. "Tuurlijk, knul. M'n schoonmoeder staat aan het roer."
--
Jantje, waarom was je te laat? "Juf, er liep een mevrouw te zoeken naar een briefje van honderd." En toen heb je geholpen? "Nee juf, ik stond erop."
Zoals de waard is, zo slap is de koffie.
Beter een goede buur dan een blaffende hond, zei de kater.
Wie een kuil graaft, krijgt blaren.
Oost west, thuis wacht de afwas.
Mijn opa werd negentig en dronk elke dag jenever; m'n oma zegt dat het alleen maar zo leek.
--
Het regent dat het giet, het regent pijpenstelen,
de poes zit op de vensterbank zich dood te vervelen.
De bakker heeft een snor van meel, de slager zingt te vals,
en tante Truus die draagt haar bril aan een touwtje om haar hals.
Sjok, sjok, daar gaat de melkboer weer, zijn knol is kreupel, oud,
de kruidenier verkoopt ons thee die smaakt naar kurk en hout.
Slaap zacht, m'n schaap, m'n hartedief, de klok slaat kwart voor drie,
de maan zit in een peppel vast, en niemand weet door wie.
== sv
Tjena sjusovare, har du vaknat än? Jag har stått här och frusit i en kvart, hunden har ätit upp halva vanten och färjan går om fem minuter. Farmor ringde förresten, hon undrar om du kommer på söndag, det blir kåldolmar med lingon och säkert en utskällning för att du aldrig hör av dig. Ta med Nisse, men säg åt honom att lämna dragspelet hemma. Och du, lånade du min skruvdragare i våras? Grannen tjatar. Puss, skynda dig!
--
Gubben spottade i ån, kliade sig i skägget och kisade mot skogsbrynet. "Där borta", mumlade han, "tappade skräddarn sin peruk." Pojken fnissade. Gärdsgårdarna knakade i värmen, en koskälla pinglade, getingarna surrade kring sylten. "Morfar, finns det troll på riktigt?" Gubben skrockade så hängslena guppade. "Jajamän, pojk, jag gifte mig ju med ett."
`
