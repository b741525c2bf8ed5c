"""More rows of the table of abbreviations (speech/text/shortened.py).

Their words are the same in both languages.

By the value of their place; an underscore stands for a space in the words.
"""

from __future__ import annotations

from collections.abc import Mapping

ROWS: Mapping[str, str] = {
    "title": (
        # -- ranks and offices
        "Adm=Admiral Cpl=Corporal Brig=Brigadier Cmdr=Commander Comdr=Commander Cdr=Commander Ens=Ensign Pfc=Private_First_Class "
        "Flt=Flight Sqn=Squadron Wg=Wing Gp=Group Ldr=Leader Const=Constable Det=Detective Insp=Inspector Supt=Superintendent "
        "Msgr=Monsignor Fr=Father Ven=Venerable Mme=Madame Mlle=Mademoiselle Drs=Doctors Profs=Professors Sens=Senators "
        "Reps=Representatives Govs=Governors Revs=Reverends Amb=Ambassador Treas=Treasurer Ald=Alderman Dir=Director Dirs=Directors "
        "Dy=Deputy Exec=Executive Chf=Chief Dist=District Regt=Regiment Proj=Project Prod=Production Spl=Special Jt=Joint Nth=North Sth=South Vill=Village Teh=Tehsil "
        "Tal=Taluka Comp=Computer"
    ),
    "of": (
        "Lib=Library Ct=Court Bd=Board Min=Ministry Sec=Secretary Acad=Academy Coll=College Sch=School Fac=Faculty Off=Office Dir=Director "
        "Hse=House Mus=Museum Fed=Federation Rep=Republic Gov=Governor Pres=President Hist=History J=Journal Jour=Journal Proc=Proceedings "
        "Trans=Transactions Ann=Annals Dist=District Comm=Commission Bur=Bureau Div=Division Conf=Conference Cong=Congress "
        "Comr=Commissioner Inst=Institute Bk=Bank Admin=Administration Secs=Secretaries"
    ),
    "number": (
        "pg=page eqn=equation eqns=equations eqs=equations thm=theorem prop=proposition Def=definition prob=problem Col=column cols=columns ll=lines vv=verses "
        "sc=scene fn=footnote App=appendix appx=appendix opt=option ser=series gp=group gr=grade Yr=Year Term=terminal att=attendance "
        "resp=respirations Op=opus chs=chapters subsec=subsection ep=episode eps=episodes inv=invoice tr=track Ln=line lv=level lvl=level "
        "Cor=corollary pkt=packet lat=latitude Sess=session Tab=table Twr=tower twr=tower Gt=gate "
        "Pf=platform Ser=serial Annex=annex Qn=question Ans=answer Expt=experiment"
    ),
    "ordinal": (
        "dist=district bn=battalion div=division regt=regiment cent=century inf=infantry cav=cavalry prec=precinct gr=grade qtr=quarter "
        "inn=inning cong=Congress sess=session rd=round lvl=level blk=block wk=week"
    ),
    "plain": (
        # -- offices and trade
        "grnd=ground btl=bottle btls=bottles rtn=return hshld=household qtrly=quarterly hol=holiday pwdr=powder btn=button btns=buttons fcst=forecast fcsts=forecasts regn=registration avl=available avbl=available gge=garage gdn=garden "
        "bkfst=breakfast brkfst=breakfast assgmt=assignment asgmt=assignment hmwk=homework ctr=centre cntr=centre ctrs=centres pgm=program pgms=programs "
        "trng=training clg=college bsmt=basement frplc=fireplace fplc=fireplace lge=large frzn=frozen bnls=boneless sknls=skinless "
        "tstms=thunderstorms tstm=thunderstorm ptly=partly cldy=cloudy chk=check soln=solution gd=good dbl=double "
        "mfr=manufacturer mfrs=manufacturers mfd=manufactured mktg=marketing acctg=accounting admn=administration advt=advertisement "
        "agcy=agency apmt=appointment appmt=appointment atty=attorney attys=attorneys bdrm=bedroom bdrms=bedrooms btwn=between "
        "cncl=council chq=cheque chqs=cheques chmn=chairman dtd=dated engr=engineer engrs=engineers eqpt=equipment estd=established "
        "hdwd=hardwood hdqrs=headquarters hrly=hourly indl=industrial instr=instructor jnl=journal mgt=management mngr=manager "
        "mngmt=management msgs=messages mtgs=meetings nbr=number pmt=payment pmts=payments rcpt=receipt regd=registered retd=retired "
        "rgds=regards rqd=required sgd=signed stmt=statement stmts=statements svcs=services txns=transactions whse=warehouse "
        "wkly=weekly mthly=monthly yrly=yearly qtly=quarterly cttee=committee cmte=committee twp=township clny=colony "
        "secy=secretary commr=commissioner cllr=councillor cllrs=councillors distt=district asstt=assistant engg=engineering "
        "nego=negotiable coeff=coefficient assy=assembly chgs=charges wknds=weekends "
        "govtl=governmental dlvy=delivery pmnt=payment rsvn=reservation bfast=breakfast schl=school vlg=village "
        "comdt=commandant addr=address prkg=parking hdbk=handbook yrbk=yearbook "
        # -- messages
        "smth=something sth=something sm1=someone ne1=anyone no1=no_one nxt=next frm=from tym=time grt=great gud=good evng=evening mrng=morning "
        "plzz=please thnks=thanks thankx=thanks thanx=thanks ystrdy=yesterday tmrrw=tomorrow 2morrow=tomorrow tomo=tomorrow bcuz=because whr=where "
        "abt=about cld=could wld=would shld=should thnx=thanks tnx=thanks tks=thanks thks=thanks tmr=tomorrow tmrow=tomorrow 2mrw=tomorrow 2moz=tomorrow "
        "yday=yesterday ystday=yesterday wkend=weekend mornin=morning bcz=because bcoz=because bcos=because b4n=bye_for_now "
        "ppls=people l8=late m8=mate w8=wait h8=hate str8=straight luv=love ofc=of_course nvm=never_mind sry=sorry srsly=seriously "
        "gnite=good_night tonite=tonight nite=night congrats=congrats "
    ),
    "word": (
        "cust=customer educ=education neg=negative illus=illustrated suppl=supplement ret=retired agg=aggregate concs=concessions "
        "flrs=floors lic=license pref=preferred canc=cancelled pd=paid vert=vertical horiz=horizontal equiv=equivalent "
        "freq=frequency immed=immediately chem=chemistry econ=economics geog=geography phys=physics elem=elementary "
        "svc=service rpt=report extn=extension Is=Islands refrig=refrigerate bldrs=builders "
        "sched=scheduled incr=increase decr=decrease diam=diameter Secy=Secretary Supt=Superintendent "
        "Penin=Peninsula Hts=Heights Jour=Journal bibl=bibliography sgl=single cond=condition sal=salary cinn=cinnamon pepp=pepper orch=orchestra mtn=mountain mtns=mountains spgs=springs hbr=harbor lect=lecturer gar=garage Ofc=office Spl=Special Jt=Joint oint=ointment Mts=Mountains recip=recipient "
        "infl=inflation exch=exchange abbrev=abbreviation abbr=abbreviation pron=pronunciation corresp=correspondence "
        "aux=auxiliary mech=mechanical temps=temperatures secs=seconds prelim=preliminary unfurn=unfurnished furn=furnished "
        "veh=vehicle rept=report ques=question approp=appropriate dept=department "
        "lgth=length wdth=width agric=agriculture "
    ),
    "inside": (
        "util=utilities veg=vegetable gran=granulated evap=evaporated grd=ground qual=qualification Dir=Director Dist=district equip=equipment exp=experience pos=positive oper=operating sig=signature refs=references "
        "comms=communications elec=electrical pers=personal poss=possible std=standard calc=calculated disc=discount opt=optional "
        "regs=regulations subj=subject cert=certificate perm=permanent dup=duplicate dist=distance proj=project "
        "alt=alternate "
        ""
    ),
}
LATER = frozenset(
    each.partition("=")[0].lower()
    for place in ("plain", "word", "inside")
    for each in ROWS[place].split()
)
"""Spellings of this module, of which short ones in capitals are often other words (``DTD``)."""
