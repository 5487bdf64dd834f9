"""Tests of the names that stand for secrets."""
# ruff: noqa: RUF001 - words of many languages

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcphost.protocol import secret_names
from mcphost.protocol.schemas import looks_secret


def words(text: str) -> list[str]:
    return text.split()


SECRET = words("""
    password passwd passphrase pwd userPassword user_password user-password PASSWORD password2
    secret clientSecret client_secret secrets my.secret CLIENT_SECRET
    token access_token accessToken authToken bearer_token x-auth-token apitoken jwt
    api_key apiKey APIKey API_KEY apikey api-keys secret_key private_key privateKey PrivateKeyPEM
    accessKeyId ssh_key signingKey encryption_key
    credential credentials awsCredentials Authorization authorization_header
    ssn SSN userSSN cvv cvv2 CVC pin PIN userPIN pin_code otp totp_code
    social_security_number cardNumber credit_card_number one-time-code verification_code

    card_numbers cardnumber cardNo card_num creditCard debit-card bankCardNumber card_expiry
    CVV cvvCode IBAN ibanNumber account_number accountNumber accountNumbers bank_account acct_no
    routing_number routingNo sort_code transitNumber
    seed_phrase seedPhrase seedphrase recoveryPhrase recovery_words mnemonic backup_codes
    connection_string connectionString database_url db-url connstr
    PIN cardPin mothers_maiden_name security_answers mfaCode authenticator_code
""")

SPOKEN = """
    Your card number, please / The number on your card: CVV / IBAN of the account / Sort code
    Enter your 12-word seed phrase / Connection string of the database / PIN of your card
    \uff30\uff29\uff2e / pass\u200bword

    Contraseña / Tu contraseña / clave / Clave de acceso / Número de la tarjeta / número de cuenta
    Código de seguridad / Frase semilla / Cadena de conexión

    Mot de passe / votre mot de passe / Numéro de carte bancaire / Numéro de compte / Code secret
    Cryptogramme visuel / Phrase de récupération / Clé privée / Jeton d'accès

    Senha / Palavra-passe / Número do cartão / número da conta / Código de segurança / Chave privada

    Passwort / Kennwort / Kartennummer / Kontonummer / Bankleitzahl / Prüfziffer / Geheimzahl
    Privater Schlüssel

    Kata sandi / Nomor kartu / Nomor rekening / Kunci privat

    密码 / 请输入密码 / 银行卡号 / 助记词 / 验证码 / 私钥 / 連接字串
    パスワード / カード番号 / 暗証番号 / 口座番号 / 秘密鍵
    पासवर्ड / कार्ड नंबर / खाता संख्या / ओटीपी
    كلمة المرور / رقم البطاقة / رقم الحساب / رمز التحقق
    পাসওয়ার্ড / কার্ড নম্বর / ওটিপি
    Пароль / Введите пароль / Номер карты / Номер счёта / ПИН-код / Секретный ключ / номер_карты
    پاس ورڈ / کارڈ نمبر
"""
"""Names that must be recognized, in English, Spanish, French, Portuguese, German, Indonesian,
Chinese, Japanese, Hindi, Arabic, Bengali, Russian and Urdu."""

UNSUSPECTED = """
    Shipping address / Your opinion / pineapple / discarded / scorecard / The account's name
    How many tokens? / random seed / A search phrase / connection name / Number of cards
    Which account is it? / routing / The string to look for / database

    Palabra clave / clavel / Número de pedido / Cuenta / contra / Tarjeta
    Mot / passe-temps / Numéro de commande / Carte du restaurant / identifiant
    Senhor / passeio / Número do pedido / conta
    Zahl / Konto / Karte / Schlüssel / Nummer der Bestellung
    Nomor pesanan / kartu / rekening
    订单号 / 号码 / 密度 / 账户名 / 注文番号 / カード / 口座名
    खाता / नंबर / कार्ड / حساب / رقم الطلب / البطاقة / কার্ড / অর্ডার নম্বর
    Секретарь / Номер заказа / карта / счёт / کارڈ / آرڈر نمبر
"""
"""Names that must not be recognized, in the same languages."""


NEAR = """
    wachtwoord / pincode / kaartnummer / rekeningnummer / şifre / kart numarası
    hesap numarası / lösenord / losenord / loesenord / adgangskode / passord / salasana
    jelszó / jelszo / κωδικός πρόσβασης / סיסמה / รหัสผ่าน / mật khẩu / Kreditkarte
    Zugangsdaten / Zugangscode / Zugriffstoken / Bankverbindung / EC-Karte / TAN
    Sicherheitsfrage / Privater Schluessel / identifiants / 2FA code / two factor code
    pass phrase / PAT / GITHUB_PAT / DB_PASS / pw / unlock code / security question
    session cookie / auth header / basic auth / bank details / swift code / kubeconfig
    keystore / Voer uw wachtwoord in / Şifrenizi girin / ŞİFRE / sifrenizi
    Enter the code we sent you / Enter the 6 digits of your authenticator app
    Your card's number, please / hasla / hasłem / вводу пароля / номерКарты / numeroTarjeta
    müşteriŞifresi / Zahlungsdaten / Kreditkartendaten / Passphrase / Wiederherstellungscode
    PIN-Nummer / Kartenprüfnummer / IBAN / Login-Daten / Anmeldepasswort / mobile TAN
    Einmalkennwort / Bankkonto / Kontoverbindung / Wi-Fi password / AWS keys / SSH keys
    master pw / API credentials / passkey / OAuth code / recovery seed / backup codes
    6-digit code / six-digit PIN / code from your phone / code from the text message
    Enter the code from the email / Type the code shown in your authenticator
    authentication app code / two-step code / 2-step verification code / security token
    card expiry date / expiration date of your card / expiry date of the card
    last four digits of your card / the three digits on the back of your card / bank login
    online banking login / private wallet key / JSESSIONID / PHPSESSID / Set-Cookie / X-Api-Key
    service account json / DATABASE_URL / MONGO_URI / SMTP_PASS / ADMIN_PW / USER_PWD / passw
    pass wd / psswd / GH_TOKEN / NPM_TOKEN / SLACK_WEBHOOK_URL / SAS url
    What code did you receive? / We texted you a code. What is it?
    We have sent a code to your phone / The number on the front of your card
    Which six digits does the app show? / Type the numbers from your security device
    Your secret / Account pass code / door PIN / safe combination / vault key / wallet key
    decryption password / GPG private key / client certificate key / keyfile / key file
    username and password / answer to your security question / mother's maiden name
    name of your first pet / one time password / one-time pin / OTP code
    number of your credit card / bank account no. / Acct # / sort code / BSB number / BIC
    IFSC code / UPI PIN / CLABE / crypto wallet phrase / passphase / memorable word
    token value / auth-token / refreshToken / hash of the password / API-KEY / apikey2
    PGPASSWORD / MYSQL_PWD / hmac / signature key / sudo password / private SSH key / JWT
    basicAuth / cardholder number / PAN / card PAN / EFTPOS / payment card / Ihre Kartennummer
    Nummer Ihrer Kreditkarte / Ihr geheimes Wort / Code aus der SMS / Code aus Ihrer App
    Code, den wir Ihnen geschickt haben / Bitte geben Sie den sechsstelligen Code ein
    CVV-Nummer / Schlüsseldatei / Tresorcode / Türcode / Zugangskarte PIN
    code de déverrouillage / le code reçu par SMS / Entrez le code que nous vous avons envoyé
    vos identifiants / votre RIB / coordonnées bancaires / date d'expiration de la carte
    code à six chiffres / question secrète / clef API / jeton / el código que te enviamos
    código de seis dígitos / NIP de la tarjeta / datos bancarios
    fecha de caducidad de la tarjeta / claves de acceso / token / código que enviamos
    chave de API / o código que enviamos por SMS / dados do cartão / validade do cartão
    palavras-passe / codice che ti abbiamo inviato / scadenza della carta / credenziali
    PIN della carta / coordinate bancarie / hasło / twoje hasło / numer karty / nr karty
    kod z SMS / numer konta / klucz prywatny / dane do logowania
    Podaj numer rachunku bankowego / Podaj kod, który wysłaliśmy / heslo / Zadejte heslo
    číslo karty / číslo účtu / soukromý klíč / ověřovací kód / jelszavát / kártyaszám
    bankkártya száma / számlaszám / privát kulcs / ellenőrző kód / lösenordet / kortnummer
    kontonummer / privat nyckel / engångskod / säkerhetskod / adgangskoden / kodeordet
    engangskode / privat nøgle / passordet / sikkerhetskode / privat nøkkel / salasanasi
    kortin numero / tilinumero / yksityinen avain / kertakäyttöinen koodi / vahvistuskoodi
    parolă / numărul cardului / numărul contului / cheie privată / cod de verificare / парола
    номер на карта / номер на сметка / частен ключ / еднократен код / пароль / номер картки
    номер рахунку / приватний ключ / одноразовий код / lozinka / broj kartice / broj računa
    privatni ključ / jednokratni kod / geslo / številka kartice / številka računa / slaptažodis
    kortelės numeris / parool / kaardi number / kontonumber / 비밀번호 / 카드 번호 / 계좌 번호 / 개인 키
    인증 번호 / 일회용 비밀번호 / 핀 번호 / số thẻ / số tài khoản / khóa riêng tư / mã xác minh / mã PIN
    mat_khau / so_the / so_tai_khoan / หมายเลขบัตร / เลขที่บัญชี / คีย์ส่วนตัว / รหัส OTP
    รหัสใช้ครั้งเดียว / kata laluan / nombor kad / nombor akaun / kunci peribadi
    kod pengesahan / nenosiri / namba ya kadi / namba ya akaunti / ufunguo binafsi
    kontrasenyas / numero ng card / numero ng account / கடவுச்சொல் / அட்டை எண் / கணக்கு எண்
    தனிப்பட்ட விசை / ஒருமுறை கடவுச்சொல் / పాస్‌వర్డ్ / కార్డ్ నంబర్ / ఖాతా సంఖ్య / ಪಾಸ್‌ವರ್ಡ್
    ಕಾರ್ಡ್ ಸಂಖ್ಯೆ / പാസ്‌വേഡ് / കാർഡ് നമ്പർ / पासवर्ड / कार्ड क्रमांक / खाते क्रमांक / પાસવર્ડ
    કાર્ડ નંબર / ਪਾਸਵਰਡ / ਕਾਰਡ ਨੰਬਰ / رمز عبور / شماره کارت / شماره حساب / کلید خصوصی
    گذرواژه‌تان / رمز یکبار مصرف / پاس ورڈ / kalmar sirri / የይለፍ ቃል / σύνθημα
    κωδικός μιας χρήσης / αριθμός κάρτας / αριθμός λογαριασμού / ιδιωτικό κλειδί / סיסמתך
    מספר כרטיס האשראי / מספר החשבון / מפתח פרטי / קוד חד פעמי / contrasenya / contrasinal
    pasahitza / lykilorð / fjalëkalimi / գաղտնաբառ / პაროლი / құпиясөз / şifrə / parol
    parolingizni kiriting / нууц үг / စကားဝှက် / ពាក្យសម្ងាត់ / ລະຫັດຜ່ານ / මුරපදය
    kredi kartı numarası / özel anahtar / doğrulama kodu / tek kullanımlık şifre
    geheime sleutel / eenmalige code / creditcardnummer / persoonlijke sleutel
    code die wij stuurden / wachtwoorden / bankrekeningnummer / sandi / kode yang kami kirim
    nomor kartu kredit / одноразового пароля / номером карты / паролем / кодовое слово
    код из письма / Введите код, который мы отправили / 密碼 / 信用卡號 / 验证码 / 一次性密码 / 暗証番号
    ワンタイムパスワード / كلمة المرور / رقم البطاقة / رمز لمرة واحدة / رمز التحقق
"""
"""Compounds, abbreviations, inflections and codes by what is said of them, in more languages."""

UNSUSPECTED_NEAR = """
    Phone number / Email address / When shall we meet? / Delivery address / Order number
    Which size? / Number of guests / Customer number / Invoice number / Project key
    Branch name / Commit message / Search term / Keyword / Language code / Zip code
    Postal code / Tax number / shipping address / primary key / postcode / max_tokens / pinned
    What is the status code? / Product code / Discount code we sent you
    Which card do you want to send? / Business card text / Where is the parcel?
    Tracking number / Telephone number / Room number / Access level / Gate number
    Recovery time objective / Device name / App name / Session title / Basic plan
    Header image / Author / Authorized person / Key result / Keyboard layout / Public key
    Foreign key / Sort order / Partition key / Security level / Bank holiday / Bank name
    Payment date / Wire length / Swift project / Routing rule / Account name / Account manager
    Cookie recipe / Digits after the comma / Code review comment / Source code / Code
    Code owner / What does the code do when it receives a message?
    Which code path sends the mail? / Phone model / Boarding pass / Passport number
    Fail or pass / Wallet color / Design tokens / Pattern / Two factors that matter
    Passwordless / Login name / User name / Connection name / Bestellnummer / Telefonnummer
    Kundennummer / Landkarte / Speisekarte / Kontoname / Sicherheitsstufe / Schlüsselwort
    Zugang / Postleitzahl / Steuernummer / Produktcode / Wie viele Karten? / Ziffer / Reisepass
    Passagier / Naam / Telefoonnummer / Bestelnummer / Aantal kaarten / Sleutelwoord
    Telefon numarası / Sipariş numarası / Posta kodu / Hesap adı / Anahtar kelime / Ürün kodu
    Şifreleme yöntemi / Postnummer / Nyckelord / Produktkod / Vykort / Ordrenummer / Nøgleord
    Puhelinnumero / Postinumero / Avainsana / Tilaus / Numer telefonu / Kod pocztowy
    Słowo kluczowe / Numer kontaktowy / Sekretarz / NIP / Telefonní číslo / Klíčové slovo
    Číslo kontaktu / Telefonszám / Irányítószám / Kulcsszó / Ταχυδρομικός κώδικας
    Αριθμός παραγγελίας / Κωδικός προϊόντος / מספר טלפון / מספר הזמנה / קוד מוצר
    หมายเลขโทรศัพท์ / รหัสไปรษณีย์ / รหัสสินค้า / Số điện thoại / Mã đơn hàng / Từ khóa
    so the answer is / Numero di telefono / Parola chiave / Cerca una parola / Codice postale
    Codice fiscale / Număr de telefon / Cod poștal / 전화번호 / 우편번호 / 제품 코드 / 암호화 방식 / رقم الهاتف
    الرمز البريدي / شماره تلفن / کد پستی / फोन नंबर / पिन कोड / ফোন নম্বর / தொலைபேசி எண்
    ఫోన్ నంబర్ / Namba ya simu / Nomor telepon / Kode pos / Kata kunci / Numero ng telepono
    Номер телефона / Почтовый индекс / Ключевое слово / Секретариат / Код товара
    Номер счёта-фактуры / Número de teléfono / Código postal / Tarjeta de visita
    Numéro de téléphone / Carte de visite / Mot-clé / Número do pedido / Palavra-chave
    Parole de chanson / 电话号码 / 邮政编码 / 产品代码 / 電話番号 / 郵便番号 / 商品コード
"""


def lines(text: str) -> list[str]:
    return [part.strip() for line in text.splitlines() for part in line.split("/") if part.strip()]


HARMLESS = words("""
    max_tokens maxTokens tokens tokenizer tokenize token_count tokenLimit token_type token_budget
    page_token nextPageToken next_token continuationToken max_token
    pinned pinning spinner opinion pins
    passenger compass bypass passed pass
    secretary keyboard key keys primary_key foreignKey keyName monkey cacheKey
    name region text id order_number card number security
    shipping opinion pineapple account_name accountId account_type discard scorecard postcard_message
    seed random_seed search_phrase connection connection_name string routing routing_key iBanner
    number_of_cards recovery_time backup_schedule database db_name verification login_name sms
""")


@pytest.mark.parametrize("name", SECRET)
def test_a_name_of_a_secret_is_recognised(name):
    assert looks_secret(name)


@pytest.mark.parametrize("name", HARMLESS)
def test_a_harmless_name_is_not_taken_for_a_secret(name):
    assert not looks_secret(name)


@pytest.mark.parametrize("text", ["Your API key", "The password", "Card number", "PIN"])
def test_the_words_of_a_title_are_checked_for_secrets(text):
    assert looks_secret(text)


@pytest.mark.parametrize("text", lines(SPOKEN) + lines(NEAR))
def test_secrets_and_payment_credentials_are_recognised_in_many_languages(text):
    assert looks_secret(text)


@pytest.mark.parametrize("text", lines(UNSUSPECTED) + lines(UNSUSPECTED_NEAR))
def test_words_that_only_resemble_secrets_are_accepted_in_all_languages(text):
    assert not looks_secret(text)


@given(st.text(st.characters(exclude_categories=[])))
def test_any_text_can_be_checked_as_a_name(text):
    assert looks_secret(text) in (True, False)


def test_each_language_has_a_table_and_every_purpose_in_it_is_used():
    text = Path(secret_names.__file__).with_suffix(".txt").read_text()
    tables = [table.splitlines()[1:] for table in text.split("\n[")[1:]]
    assert len(tables) >= 40
    purposes = {line.partition(": ")[0] for table in tables for line in table if line}
    assert purposes == secret_names._TABLE.keys()
    code = Path(secret_names.__file__).read_text()
    assert {name for name in purposes if f'_TABLE["{name}"]' in code} == purposes


@pytest.mark.parametrize("purpose", ["words", "stems", "fragments"])
def test_every_term_of_every_language_is_recognised_with_and_without_its_accents(purpose):
    for term in secret_names._TABLE[purpose]:
        text = " ".join(part for part in term.split("_") if part != "..")
        assert looks_secret(text), term
        assert looks_secret(secret_names._plain(text)), term


def test_searching_a_long_text_for_secrets_takes_linear_time():
    """Parts of terms over and over: the pattern must not try their combinations."""
    text = "code number de mot code " * 20_000
    assert not looks_secret(text)
    assert looks_secret(f"{text} password")
